// Tells which calls wait on a list, and which come at once.
#include "base/wait_list.h"

#include <gtest/gtest.h>

namespace varve {
namespace {

TEST(WaitList, calls_all_once) {
  WaitList list;
  int calls = 0;
  list.add([&] { ++calls; });
  list.add([&] { ++calls; });
  EXPECT_TRUE(list.any());
  EXPECT_EQ(calls, 0);
  list.wake();
  list.wake();
  EXPECT_EQ(calls, 2);
  EXPECT_FALSE(list.any());
}

TEST(WaitList, one_that_is_called_may_wait_again) {
  WaitList list;
  int calls = 0;
  list.add([&] {
    ++calls;
    list.add([&] { ++calls; });
  });
  list.wake();
  EXPECT_EQ(calls, 1);
  list.wake();
  EXPECT_EQ(calls, 2);
}

TEST(WaitList, calls_at_once_what_need_not_wait) {
  WaitList list;
  int calls = 0;
  bool full = false;
  list.add_while([&] { return full; }, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
  full = true;
  list.add_while([&] { return full; }, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
  list.wake();
  EXPECT_EQ(calls, 2);
}

TEST(WaitList, nobody_waits_after_the_end) {
  WaitList list;
  int calls = 0;
  list.add([&] { ++calls; });
  list.end();
  EXPECT_EQ(calls, 1);
  list.add([&] { ++calls; });
  list.add_while([] { return true; }, [&] { ++calls; });
  EXPECT_EQ(calls, 3);
}

}  // namespace
}  // namespace varve
