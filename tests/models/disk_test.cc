// Disks where the answer can be computed.
#include <gtest/gtest.h>

#include <cmath>

#include "base/clock.h"
#include "models/disk.h"
#include "models/shingled_disk.h"

namespace varve::bench {
namespace {

constexpr std::uint64_t kMiB = 1u << 20, kSize = 4096 * kMiB;

SpindleParameters spindle() {
  return {.size = kSize, .rpm = 6000, .outer_rate = 100e6, .inner_rate = 50e6, .next_track = 1e-3, .average_seek = 12e-3,
          .full_stroke = 20e-3};
}

DiskParameters disk(std::uint64_t cache) { return {.spindle = spindle(), .interface_rate = 200e6, .cache_bytes = cache}; }

TEST(ASpindle, SeeksAsItsDataSheetSays) {
  Spindle arm(spindle());
  SeededRandom random(1);
  double seeks = 0, turns = 0, now = 0;
  Energy energy;
  constexpr int kMoves = 20000;
  for (int i = 0; i < kMoves; ++i) {
    const auto move = arm.go(random.next() % (kSize >> 12) << 12, 4096, false, now, energy);
    seeks += move.seek;
    turns += move.turn;
    now += move.seconds();
  }
  EXPECT_NEAR(seeks / kMoves, 12e-3, 0.3e-3);
  EXPECT_NEAR(turns / kMoves, 5e-3, 0.2e-3) << "half a turn";
}

// (t_avg − t1)/(t_F − t1) = 2/((p + 1)(p + 2)), for the seeks of three data sheets.
TEST(ASpindle, BendsItsCurveForTheAverage) {
  const struct {
    double next, average, full, exponent;
  } sheets[] = {{1, 12, 20, 0.425}, {0.5, 8, 17.35, 0.678}, {2, 12, 19, 0.410}};
  for (const auto& sheet : sheets) {
    SpindleParameters parameters = spindle();
    parameters.next_track = sheet.next * 1e-3;
    parameters.average_seek = sheet.average * 1e-3;
    parameters.full_stroke = sheet.full * 1e-3;
    EXPECT_NEAR(Spindle(parameters).exponent(), sheet.exponent, 0.0005);
  }
}

// Ruemmler, Wilkes, "An introduction to disk drive modeling": seeks of the HP 97560 as they were measured. A curve that knows only the
// least, the mean and the longest of them comes within 0.75 ms of each.
TEST(ASpindle, ComesNearACurveThatWasMeasured) {
  constexpr int kCylinders = 1962;
  const auto measured = [](int cylinders) {
    return (cylinders <= 383 ? 3.24 + 0.4 * std::sqrt(cylinders) : 8.0 + 0.008 * cylinders) * 1e-3;
  };
  double mean = 0;  // of random pairs
  for (int d = 1; d < kCylinders; ++d) mean += measured(d) * 2 * (kCylinders - d) / (1.0 * kCylinders * kCylinders);
  constexpr std::uint64_t kCylinder = kMiB;
  Spindle arm({.size = kCylinders * kCylinder, .rpm = 4002, .outer_rate = 2e6, .inner_rate = 2e6, .next_track = measured(1),
               .average_seek = mean, .full_stroke = measured(kCylinders - 1)});
  for (int d = 1; d < kCylinders; ++d)
    EXPECT_NEAR(arm.look(static_cast<std::uint64_t>(d) * kCylinder, 4096, false, 0).seek, measured(d), 0.75e-3) << d;
}

TEST(ASpindle, ReadsInARowAtTheRateOfTheZone) {
  Spindle arm(spindle());
  Energy energy;
  EXPECT_NEAR(arm.go(0, kMiB, false, 0, energy).seconds(), kMiB / 100e6, 1e-6);
  EXPECT_NEAR(arm.look(kSize - kMiB, kMiB, false, 0).transfer, kMiB / 50e6, 1e-4);
  EXPECT_EQ(arm.look(kMiB, kMiB, false, 1).turn, 0);
}

TEST(ASpindle, AWriteThatComesTooLateWaitsForItsPlaceToComeRound) {
  Spindle arm(spindle());
  Energy energy;
  double now = arm.go(0, 4096, true, 0, energy).seconds();
  EXPECT_EQ(arm.look(4096, 4096, true, now).turn, 0) << "it was there in time";
  arm.let_go();
  for (const double late : {1e-4, 1e-3, 9e-3, 13e-3})
    EXPECT_NEAR(arm.look(4096, 4096, true, now + late).turn, 10e-3 - std::fmod(late, 10e-3), 1e-6) << late;
  EXPECT_EQ(arm.look(4096, 4096, false, now + 1e-3).turn, 0) << "a read was read ahead";
  constexpr double kBehind = 200 * 1024 / 100e6;  // seconds until the place 200 KiB further on comes
  EXPECT_NEAR(arm.look(204 * 1024, 4096, true, now + 1e-3).turn, kBehind - 1e-3, 1e-5) << "a place further on has not gone by";
}

TEST(ADisk, SyncedWritesInARowTakeATurnEach) {
  for (const bool durable : {false, true}) {
    DiskParameters parameters = disk(8 * kMiB);
    parameters.request = 1e-4;
    Disk cached({}, parameters);
    std::uint64_t now = 0;
    for (std::uint64_t i = 0; i < 100; ++i) {
      now += cached.serve({Op::write, i * 4096, 4096, durable}, now);
      if (!durable) now += cached.serve({Op::flush}, now);
    }
    EXPECT_NEAR(now * 1e-9, 100 * 10e-3, 20e-3);
    EXPECT_LE(cached.work().seeks, 1U);
  }
}

TEST(ADisk, AStreamWaitsForNoTurn) {
  Disk cached({}, disk(8 * kMiB));
  std::uint64_t now = 0;
  for (std::uint64_t at = 0; at < 256 * kMiB; at += kMiB) now += cached.serve({Op::write, at, kMiB}, now);
  now += cached.serve({Op::flush}, now);
  EXPECT_NEAR(now * 1e-9, 256 * kMiB / 100e6 + 256 * kMiB / 200e6, 0.2) << "the medium, and the interface before it";
}

TEST(ADisk, ACacheTakesWritesUntilTheFlush) {
  Disk cached({}, disk(8 * kMiB));
  std::uint64_t now = 0;
  for (int i = 0; i < 100; ++i) now += cached.serve({Op::write, (100 - static_cast<std::uint64_t>(i)) * 16 * kMiB, 4096}, now);
  EXPECT_LT(now, 10'000'000U);
  const std::uint64_t flush = cached.serve({Op::flush}, now);
  EXPECT_GT(flush, 100U * 1'000'000) << "each a seek";
  EXPECT_EQ(cached.work().programmed, 100U * 4096);
  EXPECT_EQ(cached.serve({Op::flush}, now + flush), 0U);
}

TEST(ADisk, WritesWhatItHasWhileNothingIsAskedFor) {
  Disk cached({}, disk(8 * kMiB));
  const std::uint64_t took = cached.serve({Op::write, 64 * kMiB, 4096}, 0);
  EXPECT_EQ(cached.serve({Op::flush}, took + 1'000'000'000), 0U);
  EXPECT_GT(cached.work().background_ns, 0U);
}

TEST(ADisk, FinishesWhatItHasBegunBeforeItServesAgain) {
  Disk cached({}, disk(8 * kMiB));
  const std::uint64_t took = cached.serve({Op::write, 4000 * kMiB, 4096}, 0);
  EXPECT_GT(cached.serve({Op::flush}, took + 1'000'000), 5'000'000U) << "it has just begun to seek";
}

TEST(ADisk, WritesThroughWithoutACacheOrWhenAsked) {
  for (const std::uint64_t cache : {std::uint64_t{0}, 8 * kMiB}) {
    Disk device({}, disk(cache));
    EXPECT_GT(device.serve({Op::write, 512 * kMiB, 4096, true}, 0), 1'000'000U);
  }
}

TEST(ADisk, TakesTheReadThatIsNearest) {
  Disk device({}, disk(0));
  const Request waiting[] = {{Op::read, 3000 * kMiB, 4096}, {Op::read, 0, 4096}, {Op::write, 0, 4096}};
  EXPECT_EQ(device.choose(waiting), 1U);
}

TEST(AShingledDisk, WritesBandsInARowWithoutCopying) {
  ShingledDisk device({}, {.spindle = spindle(), .band = 32 * kMiB});
  std::uint64_t now = 0;
  for (std::uint64_t at = 0; at < 256 * kMiB; at += kMiB) now += device.serve({Op::write, at, kMiB}, now);
  EXPECT_EQ(device.work().programmed, 256 * kMiB);
  EXPECT_EQ(device.work().copied, 0U);
  EXPECT_EQ(device.cached_bytes(), 0U);
}

TEST(AShingledDisk, KeepsOtherWritesUntilItCleansTheirBand) {
  ShingledDisk device({}, {.spindle = spindle(), .band = 32 * kMiB, .cache_share = 0.01});
  std::uint64_t now = device.serve({Op::write, 33 * kMiB, 4096}, 0);
  EXPECT_EQ(device.cached_bytes(), 4096U);
  EXPECT_EQ(device.work().copied, 0U);
  device.serve({Op::read, 33 * kMiB, 4096}, now + 60'000'000'000);  // it was idle
  EXPECT_EQ(device.cached_bytes(), 0U);
  EXPECT_EQ(device.work().copied, 32 * kMiB);
}

TEST(AShingledDisk, AFullCacheMakesWritersWait) {
  ShingledDisk device({}, {.spindle = spindle(), .band = 32 * kMiB, .cache_share = 0.01});
  SeededRandom random(5);
  std::uint64_t now = 0;
  for (int i = 0; i < 20000; ++i) now += device.serve({Op::write, random.next() % (kSize >> 12) << 12, 4096}, now);
  EXPECT_GT(device.work().copied, 0U);
  EXPECT_GT(device.work()[Op::write].longest_ns, 500'000'000U);
  EXPECT_LE(device.cached_bytes(), kSize / 100);
}

}  // namespace
}  // namespace varve::bench
