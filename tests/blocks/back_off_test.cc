#include "blocks/back_off.h"

#include <gtest/gtest.h>

namespace varve::blocks {
namespace {

unsigned passed_over(BackOff& back_off) {
  unsigned units = 0;
  while (!back_off.may_try()) ++units;
  return units;
}

TEST(BackOff, TriesUntilSomethingFails) {
  BackOff back_off;
  for (unsigned unit = 0; unit < 1000; ++unit) EXPECT_TRUE(back_off.may_try());
}

TEST(BackOff, PassesOverMoreAfterEachFailureUpToABound) {
  BackOff back_off;
  for (const unsigned expected : {1U, 3U, 7U, 15U, 31U, 31U, 31U}) {
    back_off.failed();
    EXPECT_EQ(passed_over(back_off), expected);
  }
}

TEST(BackOff, ForgetsFailuresWithOneSuccess) {
  BackOff back_off;
  for (unsigned i = 0; i < 5; ++i) back_off.failed();
  (void)passed_over(back_off);
  back_off.succeeded();
  EXPECT_TRUE(back_off.may_try());
  back_off.failed();
  EXPECT_EQ(passed_over(back_off), 1U);
}

}  // namespace
}  // namespace varve::blocks
