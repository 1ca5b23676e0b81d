#include "base/types.h"
#include "scrub/pace.h"

#include <gtest/gtest.h>

namespace varve::scrub {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr std::uint64_t kSecond = 1'000'000'000;

// Reads `steps` times a MiB, each read taking `read_ns`, pausing as told. Returns the time it took.
std::uint64_t time_of(Pace& pace, std::uint64_t& now, int steps, std::uint64_t read_ns) {
  const std::uint64_t begin = now;
  for (int i = 0; i < steps; ++i) {
    now += read_ns;
    now += pace.pause_ns(now, kMiB);
  }
  return now - begin;
}

TEST(Pace, KeepsTheRate) {
  Pace pace(10 * kMiB);
  std::uint64_t now = 50 * kSecond;
  const std::uint64_t took = time_of(pace, now, 1000, 3 * kMillisecond);
  EXPECT_LE(took, 100 * kSecond);
  EXPECT_GE(took, 100 * kSecond - Pace::kCreditNs);
}

TEST(Pace, TheTimeOfReadingCounts) {
  Pace pace(10 * kMiB);
  std::uint64_t now = 50 * kSecond;
  now += kMillisecond;
  EXPECT_EQ(pace.pause_ns(now, kMiB), 0U) << "the first read is within the credit";
  now += 20 * kMillisecond;
  EXPECT_EQ(pace.pause_ns(now, kMiB), 80 * kMillisecond) << "100 ms for the second, of which it took 20";
}

TEST(Pace, ASlowDeviceIsNotMadeSlower) {
  Pace pace(10 * kMiB);
  std::uint64_t now = kSecond;
  EXPECT_EQ(time_of(pace, now, 100, 150 * kMillisecond), 100 * 150 * kMillisecond);
}

TEST(Pace, StandingStillEarnsNoBurst) {
  Pace pace(10 * kMiB);
  std::uint64_t now = kSecond;
  (void)time_of(pace, now, 10, 0);
  now += 3600 * kSecond;
  const std::uint64_t took = time_of(pace, now, 100, 0);
  EXPECT_GE(took, 10 * kSecond - Pace::kCreditNs);
}

TEST(Pace, ZeroIsNoLimit) {
  Pace pace(0);
  std::uint64_t now = kSecond;
  EXPECT_EQ(time_of(pace, now, 100, 0), 0U);
}

TEST(Pace, TheRateMayChange) {
  Pace pace(kMiB);
  std::uint64_t now = kSecond;
  (void)time_of(pace, now, 10, 0);
  pace.set_rate(100 * kMiB);
  EXPECT_EQ(time_of(pace, now, 100, 0), kSecond);
}

TEST(Pace, HugeNumbersDoNotOverflow) {
  Pace slow(1);
  EXPECT_EQ(slow.pause_ns(kSecond, 1ULL << 33), ((1ULL << 33) * kSecond) - Pace::kCreditNs);
  EXPECT_GT(Pace(1).pause_ns(kSecond, ~0ULL), 0U);
  EXPECT_EQ(Pace(~0ULL).pause_ns(kSecond, 1 << 20), 0U);
}

}  // namespace
}  // namespace varve::scrub
