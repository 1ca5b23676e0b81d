// Energy and replays where the answer can be computed.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "models/catalogue.h"
#include "models/disk.h"
#include "trace/replay.h"

namespace varve::bench {
namespace {

constexpr std::uint64_t kMiB = 1u << 20, kSize = 1024 * kMiB;

PowerLadder ladder() {
  return {{{PowerState::performance_idle, 0, 2.0, 0, 0}, {PowerState::active_idle, 5, 1.0, 0.1, 0}}, {PowerState::standby, 0, 0.25, 4, 20}};
}

TEST(APowerLadder, IsDescendedStepByStep) {
  Energy energy;
  EXPECT_DOUBLE_EQ(ladder().rest(8, 0.5, energy), 0.1);
  EXPECT_DOUBLE_EQ(energy[PowerState::performance_idle].joules, 5 * (2.0 - 0.5));
  EXPECT_DOUBLE_EQ(energy[PowerState::active_idle].joules, 3 * (1.0 - 0.5));
  EXPECT_DOUBLE_EQ(ladder().rest(4, 0.5, energy), 0) << "still awake";
}

TEST(APowerLadder, StopsItsPlattersAndStartsThemAgain) {
  PowerLadder power = ladder();
  power.set_standby(10);
  Energy energy;
  EXPECT_DOUBLE_EQ(power.rest(30, 0, energy), 4);
  EXPECT_EQ(energy.spin_ups, 1U);
  EXPECT_DOUBLE_EQ(energy.joules_of_all(), 5 * 2.0 + 5 * 1.0 + 20 * 0.25 + 20);
  EXPECT_DOUBLE_EQ(power.rest(30, 0, energy, false), 0) << "nobody woke it";
  EXPECT_EQ(energy.spin_ups, 1U);
}

TEST(APowerLadder, CanBeKeptAwake) {
  PowerLadder power = ladder();
  power.stay_awake();
  Energy energy;
  EXPECT_DOUBLE_EQ(power.rest(100, 0, energy), 0);
  EXPECT_DOUBLE_EQ(energy.joules_of_all(), 200);
}

// Data sheet: 9.5 J for a spin-up of 2.5 s, 0.2 W in standby, 1.7 W before.
TEST(APowerLadder, BreaksEvenWhereTheDataSheetSays) {
  const auto disk = make_model("hdd-laptop", kSize);
  EXPECT_NEAR(disk->power().break_even(), 6.0, 0.01);
  EXPECT_EQ(PowerLadder().break_even(), 0);
}

TEST(ADisksEnergy, IsThatOfItsStates) {
  const SpindleParameters spindle{.size = kSize, .rpm = 6000, .outer_rate = 100e6, .inner_rate = 100e6, .next_track = 1e-3,
                                  .average_seek = 12e-3, .full_stroke = 20e-3, .seek_watts = 3, .read_watts = 2, .write_watts = 1,
                                  .turn_watts = 0.5};
  Disk disk({.size = kSize, .idle_watts = 1}, {.spindle = spindle, .interface_rate = 1e9});
  disk.serve({Op::read, 0, kMiB}, 0);
  EXPECT_NEAR(disk.work().energy[PowerState::read].joules, 2 * kMiB / 100e6, 1e-9);
  EXPECT_EQ(disk.work().energy[PowerState::seek].joules, 0);
  disk.serve({Op::write, 512 * kMiB, kMiB}, disk.free_at_ns());
  const Energy& energy = disk.work().energy;
  EXPECT_NEAR(energy[PowerState::write].joules, kMiB / 100e6, 1e-9);
  EXPECT_GT(energy[PowerState::seek].seconds, 1e-3);
  EXPECT_NEAR(energy[PowerState::seek].joules, 3 * energy[PowerState::seek].seconds, 1e-12);
  EXPECT_NEAR(disk.work().joules(), 2 * kMiB / 100e6 + kMiB / 100e6 + 3 * energy[PowerState::seek].seconds +
                                        0.5 * energy[PowerState::turn].seconds, 1e-9);
}

// 1.1 W while it works, whatever it draws at rest: a run without rests takes as much energy in all variants.
TEST(AMicrodrive, TakesTheSameForWorkWithoutRests) {
  double seconds = 0;
  for (const char* name : {"microdrive", "microdrive-idle25", "microdrive-idle75"}) {
    const auto disk = make_model(name, kSize);
    Replay replay(*disk, ReplayMode::closed);
    for (std::uint64_t i = 0; i < 100; ++i) replay.add({.request = {Op::read, (i * 37 % 100) * 10 * kMiB, 64 * 1024}});
    const auto phases = replay.finish();
    ASSERT_EQ(phases.size(), 1U);
    EXPECT_NEAR(phases[0].joules, 1.1 * phases[0].seconds, 0.02 * phases[0].joules) << name;
    if (seconds == 0) seconds = phases[0].seconds;
    EXPECT_DOUBLE_EQ(phases[0].seconds, seconds);
  }
}

TEST(SfsDrives, WriteSmallBlocksAsPublished) {
  const struct {
    const char* name;
    double random, sequential;  // MB/s
  } drives[] = {{"sfs-h", 5.3, 170}, {"sfs-m", 0.6, 87}, {"sfs-l", 0.002, 38}};
  for (const auto& drive : drives) {
    const auto device = make_model(drive.name, kSize);
    std::uint64_t now = 0;
    for (std::uint64_t at = 0; at < kSize; at += kMiB) now += device->serve({Op::write, at, kMiB}, now);
    EXPECT_NEAR(static_cast<double>(kSize) / static_cast<double>(now) * 1e3, drive.sequential, 0.05 * drive.sequential) << drive.name;
    now = 0;
    constexpr std::uint64_t kWrites = 100;
    for (std::uint64_t i = 0; i < kWrites; ++i) now += device->serve({Op::write, i * 104729 % (kSize >> 12) << 12, 4096}, now);
    const double rate = static_cast<double>(kWrites * 4096) / static_cast<double>(now) * 1e3;
    EXPECT_NEAR(rate, drive.random, 0.35 * drive.random) << drive.name;
  }
}

const char* const kTrace =
    "#mark one\n0 W 0 1048576 - 1000\n1000000 W 1048576 1048576 s 1000\n# a comment\n#mark two\n2001000 R 0 4096 - 1000\n3000000 F 0 0 -\n";

std::vector<Phase> replayed(ReplayMode mode, double think = 1) {
  const auto model = make_model("ssd-page", 64 * kMiB);
  Replay replay(*model, mode, think);
  std::istringstream in(kTrace);
  read_trace(in, {[&](const TracedRequest& event) { replay.add(event); }, [&](const std::string& name) { replay.mark(name); }});
  return replay.finish();
}

TEST(AReplay, CountsByPhase) {
  const auto phases = replayed(ReplayMode::closed);
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].name, "one");
  EXPECT_EQ(phases[0].work[Op::write].bytes, 2 * kMiB);
  EXPECT_EQ(phases[1].work[Op::write].bytes, 0U);
  EXPECT_EQ(phases[1].work[Op::read].requests, 1U);
  EXPECT_EQ(phases[1].work[Op::flush].requests, 1U);
}

TEST(AReplay, KeepsTheTimesThatItIsToldTo) {
  const auto open = replayed(ReplayMode::open), closed = replayed(ReplayMode::closed), busy = replayed(ReplayMode::closed, 0);
  const auto all = [](const std::vector<Phase>& phases) { return phases[0].seconds + phases[1].seconds; };
  EXPECT_NEAR(all(closed) - all(busy), 0.999e-3 + 1.0e-3, 1e-6) << "between answers and next requests, where the answers are known";
  EXPECT_GE(all(open), 3.0e-3);
  EXPECT_LT(all(busy), all(open) + 3e-3);
  EXPECT_NEAR(all(busy), static_cast<double>(busy[0].work.busy_ns() + busy[1].work.busy_ns()) * 1e-9, 1e-9);
}

TEST(AReplay, NamesTheLineThatIsNoEvent) {
  for (const char* text : {"0 W 0 4096 -\n1 Q 0 0 -\n", "0 W 0 4096 -\n1 W 0 x -\n", "0 W 0 4096 -\n1 W 0 4096\n",
                           "0 W 0 4096 -\n1 W 0 1 ! 1\n",
                           "0 W 0 4096 -\n1 W 0 1 - 1 1\n"}) {
    std::istringstream in(text);
    try {
      read_trace(in, {[](const TracedRequest&) {}, [](const std::string&) {}});
      ADD_FAILURE() << text;
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("line 2"), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace varve::bench
