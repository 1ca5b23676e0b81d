// What the trial of mkfs.varve finds on modelled devices, and that it finds nothing where there is nothing or nobody can tell.
#include <gtest/gtest.h>

#include <cmath>

#include "mkfs/trial.h"
#include "models/catalogue.h"
#include "trial_device.h"

namespace varve::bench::test {
namespace {

using mkfs::Findings;

constexpr std::uint64_t kMiB = 1 << 20, kSize = 1024 * kMiB;

Findings tried(TrialDevice& device, std::uint64_t seed = 1, mkfs::HostWaits waits = mkfs::HostWaits::none()) {
  SeededRandom random(seed);
  mkfs::Trial trial(device, device.geometry().size_bytes, device.clock(), random, [](const std::string&) {}, std::move(waits));
  const auto found = trial.run();
  EXPECT_TRUE(found.ok()) << found.error().message();
  return found.ok() ? *found : Findings();
}

std::unique_ptr<DeviceModel> card(std::uint64_t unit, unsigned open, std::uint64_t size = kSize, bool used = true) {
  return card_with(size, std::make_unique<BlockFtl>(size / kFlashPage,
                                                    BlockMapping{.unit_pages = unit / kFlashPage, .open_units = open}, used));
}

void expect_found(const Findings& found, std::uint64_t unit, unsigned streams) {
  EXPECT_EQ(found.erase_unit, unit) << found.outcome;
  EXPECT_EQ(found.streams, streams) << found.outcome;
}

void expect_nothing(const Findings& found) { expect_found(found, 0, 0); }

TEST(Trial, FindsUnitsOfKnownCardsAndSticks) {
  const struct {
    const char* name;
    std::uint64_t unit;
    unsigned streams;
  } known[] = {{"sd-cheap", 4 * kMiB, 5}, {"usb-stick", 8 * kMiB, 2}, {"usb-one", 4 * kMiB, 1}, {"sfs-l", 16 * kMiB, 1}};
  for (const auto& [name, unit, streams] : known) {
    SCOPED_TRACE(name);
    TrialDevice device(make_model(name, kSize));
    const Findings found = tried(device);
    expect_found(found, unit, streams);
    EXPECT_LT(device.seconds(), 120);
    EXPECT_GT(found.costs.scattered, 100 * found.costs.in_row) << "each costs a copy";
  }
}

TEST(Trial, FindsNothingWhereThereIsNothing) {
  for (const char* name : {"sd-a1", "sd-a2", "emmc", "ssd-page", "ssd-hybrid", "ftl-page", "sfs-h", "sfs-m", "hdd-laptop", "hdd-desktop",
                           "microdrive", "smr-dm"}) {
    SCOPED_TRACE(name);
    TrialDevice device(make_model(name, kSize));
    const Findings found = tried(device);
    expect_nothing(found);
    EXPECT_TRUE(found.outcome.starts_with("nothing")) << found.outcome;
    EXPECT_LT(device.seconds(), 60);
    EXPECT_GT(found.costs.scattered, found.costs.in_row);
  }
}

TEST(Trial, FindsUnitsOfAnySizeAndNumber) {
  for (const std::uint64_t unit : {2 * kMiB, 3 * kMiB, 6 * kMiB, 12 * kMiB, 16 * kMiB})
    for (const unsigned open : {1U, 2U, 3U, 7U, 10U}) {
      SCOPED_TRACE(testing::Message() << unit / kMiB << " MiB, " << open << " open");
      TrialDevice device(card(unit, open));
      expect_found(tried(device), unit, open);
      EXPECT_LT(device.seconds(), 120);
    }
}

TEST(Trial, FindsUnitsThatTakeWritesAnywhere) {
  for (const std::uint64_t unit : {2 * kMiB, 3 * kMiB, 4 * kMiB, 16 * kMiB})
    for (const unsigned open : {1U, 2U, 5U, 8U}) {
      SCOPED_TRACE(testing::Message() << unit / kMiB << " MiB, " << open << " open");
      TrialDevice device(card_with(kSize, std::make_unique<AnywhereFtl>(unit / kFlashPage, open)));
      expect_found(tried(device), unit, open);
      EXPECT_LT(device.seconds(), 120);
    }
}

TEST(Trial, SomethingThatWasDiscardedIsNoOtherDevice) {
  TrialDevice device(card(4 * kMiB, 5, kSize, false));
  expect_found(tried(device), 4 * kMiB, 5);
}

TEST(Trial, UnitsAreThoseOfTheDiskNotOfThePartition) {
  for (const std::uint64_t before : {kMiB, 4 * kMiB, 100 * kMiB + 4096}) {
    TrialDevice device(card(4 * kMiB, 5), before);
    expect_found(tried(device), 4 * kMiB, 5);
  }
}

TEST(Trial, UnitsThatDoNotBeginWhereTheyShouldAreNotBelievedIn) {
  for (const std::uint64_t off : {kMiB / 2, kMiB, 2 * kMiB, 3 * kMiB + 65536}) {
    TrialDevice device(card(4 * kMiB, 5), off);
    device.hide_before();
    expect_nothing(tried(device));
  }
}

// Cheap requests are hidden by it now and then, and dear ones never become cheap.
TEST(Trial, NoiseHidesNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    const auto noise = [&](std::uint64_t ns, Op) {
      return ns + random.next() % (ns / 2 + 1) + (random.next() % 20 == 0 ? random.next() % 400'000'000 : 0);
    };
    TrialDevice dear(make_model("sd-cheap", kSize)), cheap(make_model("emmc", kSize));
    dear.disturb = cheap.disturb = noise;
    expect_found(tried(dear, seed), 4 * kMiB, 5);
    expect_nothing(tried(cheap, seed));
  }
}

// One of every two requests is late, by as much as a copy takes.
class BusyMachine {
 public:
  BusyMachine(TrialDevice& device, std::uint64_t seed) : random_(seed) {
    device.disturb = [this](std::uint64_t ns, Op) {
      const std::uint64_t late = random_.next() % 2 ? random_.next() % 300'000'000 : 0;
      waited_ += late;
      return ns + late;
    };
  }
  // `of_thread`: it is the thread that waits, and not what the device needs.
  mkfs::HostWaits waits(bool of_thread) {
    const auto waited = [this] { return waited_; };
    return {of_thread ? waited : mkfs::HostWaits::none().of_thread, waited};
  }

 private:
  SeededRandom random_;
  std::uint64_t waited_ = 0;
};

TEST(Trial, AMachineThatIsBusyHidesNothing) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    TrialDevice dear(make_model("sd-cheap", kSize)), cheap(make_model("emmc", kSize));
    BusyMachine beside_dear(dear, seed), beside_cheap(cheap, seed);
    expect_found(tried(dear, seed, beside_dear.waits(true)), 4 * kMiB, 5);
    expect_nothing(tried(cheap, seed, beside_cheap.waits(true)));
  }
}

// The process that serves the device is late as well, and no time of ours tells that.
TEST(Trial, AMachineThatIsBusyIsNotCalledADeviceWithoutUnits) {
  unsigned found = 0;
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(seed);
    TrialDevice dear(make_model("sd-cheap", kSize)), cheap(make_model("emmc", kSize));
    BusyMachine beside_dear(dear, seed), beside_cheap(cheap, seed);
    const Findings of_dear = tried(dear, seed, beside_dear.waits(false)), of_cheap = tried(cheap, seed, beside_cheap.waits(false));
    if (of_dear.erase_unit) expect_found(of_dear, 4 * kMiB, 5);
    else EXPECT_TRUE(of_dear.outcome.starts_with("unclear: the machine is busy")) << of_dear.outcome;
    found += of_dear.erase_unit != 0;
    expect_nothing(of_cheap);
    EXPECT_TRUE(of_cheap.outcome.starts_with("unclear: the machine is busy")) << of_cheap.outcome;
    EXPECT_LT(dear.seconds(), 180);
  }
  EXPECT_GE(found, 5U);
}

TEST(Trial, ChanceAloneFindsNothing) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SeededRandom random(seed);
    TrialDevice device(make_model("sd-a2", kSize));
    device.disturb = [&](std::uint64_t ns, Op op) {
      if (op == Op::read) return ns;  // else it would be taken for a disk
      return static_cast<std::uint64_t>(1e5 * std::pow(10, static_cast<double>(random.next() % 1000) / 1000 * 3.5));
    };
    expect_nothing(tried(device, seed));
  }
}

// Something else keeps the device busy now and then, or the machine: whole tests are slow that would be quick.
TEST(Trial, SlowMomentsAreNotTakenForUnits) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE(seed);
    SeededRandom random(seed);
    TrialDevice device(make_model("emmc", kSize));
    bool is_slow = false;
    std::uint64_t until = 0;
    const std::uint64_t longest = 20'000'000ULL << seed % 8;  // 20 ms to 2.5 s
    device.disturb = [&](std::uint64_t ns, Op op) {
      if (const auto now = device.clock().monotonic_ns(); now >= until) {
        until = now + random.next() % longest;
        is_slow = !is_slow;
      }
      return is_slow && op == Op::write ? ns + 150'000'000 : ns;
    };
    expect_nothing(tried(device, seed));
  }
}

// A device that slows down while it is tried, as one that has been written to for some time.
TEST(Trial, ADeviceThatBecomesSlowHasNoUnits) {
  for (const double from_s : {0.2, 0.5, 0.8, 1.5, 3.0}) {
    TrialDevice device(make_model("emmc", kSize));
    device.disturb = [&](std::uint64_t ns, Op) { return device.seconds() < from_s ? ns : 100 * ns; };
    expect_nothing(tried(device));
  }
}

TEST(Trial, ItEndsInTime) {
  TrialDevice device(make_model("sd-cheap", kSize));
  device.disturb = [](std::uint64_t ns, Op op) { return op == Op::write ? ns + 2'000'000'000 : ns; };
  expect_nothing(tried(device));
  EXPECT_LT(device.seconds(), 180);
}

TEST(Trial, AClockThatStandsStillTellsNothing) {
  TrialDevice device(make_model("sd-cheap", kSize));
  device.disturb = [](std::uint64_t, Op) { return std::uint64_t{0}; };
  const Findings found = tried(device);
  expect_nothing(found);
  EXPECT_EQ(found.costs, format::WritingCosts());
}

TEST(Trial, ASmallDeviceIsNotTried) {
  TrialDevice device(card(4 * kMiB, 5, 96 * kMiB));
  const Findings found = tried(device);
  expect_nothing(found);
  EXPECT_EQ(found.outcome, "not tried: smaller than 128 MiB");
  EXPECT_EQ(device.work()[Op::write].requests, 0U);
}

TEST(Trial, ItStaysInItsBounds) {
  for (const std::uint64_t bytes : {128 * kMiB, 200 * kMiB, kSize})
    for (const unsigned open : {1U, 24U}) {
      for (const bool anywhere : {false, true}) {
        auto ftl = std::make_unique<AnywhereFtl>(2 * kMiB / kFlashPage, open);
        TrialDevice device(anywhere ? card_with(kSize, std::move(ftl)) : card(2 * kMiB, open));
        SeededRandom random(1);
        ASSERT_TRUE(mkfs::Trial(device, bytes, device.clock(), random, [](const std::string&) {}).run().ok());
        EXPECT_GE(device.first_written(), 8 * kMiB);
        EXPECT_LE(device.last_written(), bytes);
      }
    }
}

TEST(Trial, AnErrorOfTheDeviceIsOne) {
  for (const std::uint64_t after : {0, 3, 20, 40, 100, 200}) {
    TrialDevice device(make_model("sd-cheap", kSize));
    device.fail_after = after;
    SeededRandom random(1);
    const auto found = mkfs::Trial(device, kSize, device.clock(), random, [](const std::string&) {}).run();
    ASSERT_FALSE(found.ok()) << after;
    EXPECT_TRUE(found.fails_with(Errc::io)) << found.error().message();
  }
}

TEST(Trial, WhatTheUserSaysCountsMore) {
  Findings found;
  found.erase_unit = 4 * kMiB;
  found.streams = 5;
  found.costs.in_row = 7;
  format::MakeParameters told, given;
  told.erase_unit.blocks = 64;
  told.erase_source = format::Source::told;
  adopt(found, told);
  EXPECT_EQ(told.erase_unit.blocks, 1024U);
  EXPECT_EQ(told.erase_source, format::Source::measured);
  EXPECT_EQ(told.streams, 5);
  EXPECT_EQ(told.streams_source, format::Source::measured);
  EXPECT_EQ(told.costs.in_row, 7U);
  given.erase_unit.blocks = 64;
  given.streams = 3;
  given.erase_source = given.streams_source = format::Source::given;
  adopt(found, given);
  EXPECT_EQ(given.erase_unit.blocks, 64U);
  EXPECT_EQ(given.streams, 3);
  EXPECT_EQ(given.streams_source, format::Source::given);
  found.erase_unit = 0;
  found.streams = 0;
  format::MakeParameters unknown;
  unknown.erase_unit.blocks = 64;
  unknown.erase_source = format::Source::told;
  adopt(found, unknown);
  EXPECT_EQ(unknown.erase_unit.blocks, 64U);
  EXPECT_EQ(unknown.erase_source, format::Source::told);
  EXPECT_EQ(unknown.streams_source, format::Source::unknown);
  EXPECT_EQ(unknown.costs, format::WritingCosts());
}

}  // namespace
}  // namespace varve::bench::test
