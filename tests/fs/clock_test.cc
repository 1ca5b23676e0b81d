#include "base/clock.h"

#include <ctime>

#include <gtest/gtest.h>

namespace varve::test {
namespace {

Timestamp fine_time() {
  timespec ts{};
  clock_gettime(CLOCK_REALTIME, &ts);
  return {ts.tv_sec, static_cast<std::uint32_t>(ts.tv_nsec)};
}

TEST(SystemClock, IsNotBehindWhatTheKernelHasShown) {
  for (int i = 0; i < 1000; ++i) {  // many of them fall between two ticks of the coarse clock
    const Timestamp shown = fine_time();
    Clock::system().not_before(shown);
    EXPECT_GE(Clock::system().now(), shown);
  }
}

TEST(SystemClock, DoesNotFollowAStampFromTheFuture) {
  Timestamp ahead = fine_time();
  ahead.seconds += 3600;
  Clock::system().not_before(ahead);
  EXPECT_LT(Clock::system().now(), ahead);
}

}  // namespace
}  // namespace varve::test
