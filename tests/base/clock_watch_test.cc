#include "base/clock_watch.h"

#include <gtest/gtest.h>

#include "support/manual_clock.h"

namespace varve {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000, kDaySeconds = 86'400;

TEST(ClockWatch, sees_each_jump_once) {
  test::ManualClock clock;
  ClockWatch watch(clock);
  EXPECT_EQ(watch.jump(), 0);
  clock.advance(10 * kDaySeconds * kSecond);
  EXPECT_EQ(watch.jump(), 0) << "that much time has passed";
  clock.set_wall(10 * kDaySeconds * kSecond);
  EXPECT_EQ(watch.jump(), 10 * kDaySeconds);
  EXPECT_EQ(watch.jump(), 0);
  clock.set_wall(-20 * kDaySeconds * kSecond);
  EXPECT_EQ(watch.jump(), -30 * kDaySeconds);
  EXPECT_EQ(watch.jump(), 0);
}

TEST(ClockWatch, minds_no_clock_that_is_kept_right) {
  test::ManualClock clock;
  ClockWatch watch(clock);
  clock.set_wall((ClockWatch::kLeastSeconds - 1) * kSecond);
  EXPECT_EQ(watch.jump(), 0);
  clock.set_wall(ClockWatch::kLeastSeconds * kSecond);
  EXPECT_EQ(watch.jump(), ClockWatch::kLeastSeconds) << "what comes in small steps is seen as well";
}

}  // namespace
}  // namespace varve
