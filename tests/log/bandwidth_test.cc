// The bound of writes in flight follows the device.
#include "device/bandwidth.h"

#include <gtest/gtest.h>

#include "base/types.h"

namespace varve::device {
namespace {

// A device that writes one MiB in `ns_per_mib`, kept busy as far as the bound allows.
void stream(Bandwidth& bandwidth, std::uint64_t mib, std::uint64_t ns_per_mib) {
  std::uint64_t now = 1, in_flight = 0;
  for (std::uint64_t i = 0; i < mib; ++i) {
    for (; in_flight == 0 || in_flight + kMiB <= bandwidth.limit(); in_flight += kMiB) bandwidth.started(kMiB, now);
    now += ns_per_mib;
    bandwidth.done(kMiB, now);
    in_flight -= kMiB;
  }
  for (; in_flight; in_flight -= kMiB) bandwidth.done(kMiB, now += ns_per_mib);
}

TEST(Bandwidth, BoundIsWhatTheDeviceWritesInFiftyMilliseconds) {
  Bandwidth bandwidth(kMiB / 4, 64 * kMiB);
  stream(bandwidth, 2000, 5'000'000);  // 200 MiB/s
  EXPECT_NEAR(static_cast<double>(bandwidth.limit()), 10.0 * kMiB, 1.0 * kMiB);
}

TEST(Bandwidth, StaysWithinItsEnds) {
  Bandwidth slow(kMiB, 16 * kMiB);
  stream(slow, 200, 500'000'000);  // 2 MiB/s
  EXPECT_EQ(slow.limit(), kMiB);
  Bandwidth fast(kMiB, 16 * kMiB);
  stream(fast, 2000, 100'000);
  EXPECT_EQ(fast.limit(), 16 * kMiB);
}

TEST(Bandwidth, SmallWritesNowAndThenSayNothing) {
  Bandwidth bandwidth(kMiB, 16 * kMiB);
  std::uint64_t now = 1;
  for (int i = 0; i < 10'000; ++i) {
    bandwidth.started(8192, now);
    bandwidth.done(8192, now += 100'000);
    now += 1'000'000;
  }
  EXPECT_EQ(bandwidth.limit(), 16 * kMiB);
  EXPECT_EQ(bandwidth.bytes_per_second(), 0U);
}

TEST(Bandwidth, APileTellsHowLongSuchAPileTakes) {
  Bandwidth bandwidth(kMiB, 64 * kMiB);
  std::uint64_t now = 1;
  for (int i = 0; i < 4; ++i) bandwidth.started(kMiB / 4, now);
  for (int i = 0; i < 4; ++i) bandwidth.done(kMiB / 4, now += 2'500'000);
  EXPECT_NEAR(static_cast<double>(bandwidth.bytes_per_second()), 100.0 * kMiB, 0.01 * kMiB);
  EXPECT_EQ(bandwidth.limit(), 64 * kMiB) << "it was no load";
  now += 1'000'000'000;  // nothing to do
  bandwidth.started(kMiB, now);
  bandwidth.done(kMiB, now + 10'000'000);
  EXPECT_NEAR(static_cast<double>(bandwidth.bytes_per_second()), 100.0 * kMiB, 0.01 * kMiB);
  stream(bandwidth, 2000, 5'000'000);
  EXPECT_NEAR(static_cast<double>(bandwidth.bytes_per_second()), 200.0 * kMiB, 20.0 * kMiB);
}

// Threads look at the clock before they come to count what has landed, so that times may come in another order.
TEST(Bandwidth, TimesMayComeInAnotherOrder) {
  Bandwidth bandwidth(kMiB / 4, 64 * kMiB);
  bandwidth.started(64 * kMiB, 100);
  bandwidth.done(64 * kMiB, 99);
  EXPECT_EQ(bandwidth.limit(), 64 * kMiB) << "nothing was measured, nothing is learned";
}

TEST(Bandwidth, FollowsADeviceThatChanges) {
  Bandwidth bandwidth(kMiB, 64 * kMiB);
  stream(bandwidth, 1000, 5'000'000);
  const std::uint64_t before = bandwidth.limit();
  stream(bandwidth, 1000, 2'500'000);
  EXPECT_GT(bandwidth.limit(), before * 3 / 2);
}

}  // namespace
}  // namespace varve::device
