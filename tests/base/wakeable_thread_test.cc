// A thread that is woken and stopped. No time is measured: what would come too early or never would hang.
#include "base/wakeable_thread.h"

#include <gtest/gtest.h>

#include <atomic>

namespace varve {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(WakeableThread, runs_until_it_is_stopped) {
  WakeableThread thread;
  std::atomic<int> turns{0};
  thread.start("varve-test", [&] {
    while (thread.sleep()) ++turns;
  });
  thread.wake();
  while (turns == 0) std::this_thread::yield();
  thread.stop();
  EXPECT_GE(turns, 1);
}

TEST(WakeableThread, a_call_before_its_sleep_ends_that) {
  WakeableThread thread;
  std::atomic<bool> slept{false};
  thread.wake();
  thread.start("varve-test", [&] { slept = thread.sleep(hours(1)); });
  while (!slept) std::this_thread::yield();
  thread.stop();
}

TEST(WakeableThread, knows_that_it_is_wanted_until_it_sleeps) {
  WakeableThread thread;
  EXPECT_FALSE(thread.is_wanted());
  thread.wake();
  EXPECT_TRUE(thread.is_wanted());
  EXPECT_TRUE(thread.sleep());
  EXPECT_FALSE(thread.is_wanted());
  thread.stop();
  EXPECT_TRUE(thread.is_wanted());
  EXPECT_TRUE(thread.is_stopping());
}

TEST(WakeableThread, rests_whoever_wakes_it) {
  WakeableThread thread;
  thread.wake();
  EXPECT_TRUE(thread.rest(milliseconds(1)));
  EXPECT_TRUE(thread.is_wanted()) << "that counts for the next sleep";
  EXPECT_TRUE(thread.sleep(hours(1)));
}

TEST(WakeableThread, a_rest_ends_when_it_is_stopped) {
  WakeableThread thread;
  std::atomic<bool> began{false}, goes_on{true};
  thread.start("varve-test", [&] {
    began = true;
    goes_on = thread.rest(hours(1));
  });
  while (!began) std::this_thread::yield();
  thread.stop();
  EXPECT_FALSE(goes_on);
}

TEST(WakeableThread, one_that_was_never_started_is_stopped) {
  WakeableThread thread;
  thread.stop();
  EXPECT_FALSE(thread.sleep());
}

}  // namespace
}  // namespace varve
