// When automatic snapshots are made and which of them go, decided by Protection over lists made by hand.
#include <gtest/gtest.h>

#include <algorithm>

#include "checkpoint/protection.h"
#include "checkpoint/readers.h"
#include "format/snapshot.h"
#include "io/mem_device.h"
#include "store/store_parts.h"

namespace varve::checkpoint {
namespace {

using Mode = snapshots::ProtectionSettings::Mode;
using Need = Protection::Need;
using Serials = std::vector<std::uint64_t>;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kStart = test::ManualClock::kStart / kSecond;

format::SnapshotItem automatic(std::uint64_t serial, std::int64_t age_s, std::uint64_t dead) {
  format::SnapshotItem item;
  item.serial = Serial{serial};
  item.automatic = true;
  item.clock = serial * 100;
  item.made = {kStart - age_s, 0};
  item.name = format::automatic_name(item.made);
  item.inode_file = {BlockAddr{1'000'000 + serial}, 7, 0};
  item.dead = item.alone = dead;
  return item;
}

class ProtectionTest : public ::testing::Test {
 protected:
  ProtectionTest() { parts_.start(); }
  ~ProtectionTest() override { EXPECT_FALSE(parts_.faults.read_only()) << "an invariant was broken"; }

  void keep(const std::vector<format::SnapshotItem>& items) {
    snapshots::SnapshotList list;
    for (const format::SnapshotItem& item : items) list.add(item);
    const auto loose = list.loose();
    parts_.trees.note_automatic({loose.blocks, loose.standing, loose.most, 0, list.newest_permanent() != nullptr});
    parts_.snapshots.replace(std::move(list), false);
  }
  // Three, of which each lists so many blocks.
  void keep_three(std::uint64_t dead) { keep({automatic(2, 300, dead), automatic(3, 200, dead), automatic(4, 100, dead)}); }
  void set(Mode mode, std::uint64_t window_s = 3600, std::vector<snapshots::RetentionRule> rules = {}) {
    protection_.set({mode, window_s, 30, std::move(rules)});
  }
  Protection::Decision decide(bool last = false) {
    protection_.look_who_uses_them();
    const Gate::Closure closed(parts_.gate);
    return protection_.decide(parts_.snapshots.current(), last);
  }
  Serials leaving() {
    Serials serials;
    for (const Serial serial : decide().leaving) serials.push_back(serial.v);
    return serials;
  }
  void change_something() {
    const Gate::Pass pass(parts_.gate);
    parts_.changes.active().count(1, 100);
  }
  std::uint64_t free_blocks() {
    const Gate::Pass pass(parts_.gate);
    return parts_.charge.free_blocks();
  }
  void charge_blocks(std::int64_t blocks) {
    const Gate::Pass pass(parts_.gate);
    parts_.changes.active().data_change += blocks;
  }

  io::MemDevice device_{test::kPartDeviceBytes};
  const format::EmptyFilesystem made_ = [this] {
    auto made = test::made_filesystem();
    test::write_filesystem(device_, made);
    return made;
  }();
  test::StoreParts parts_{device_, made_.super};
  Readers readers_{{parts_.gate, parts_.clock, parts_.snapshots, parts_.charge}};
  Protection protection_{{parts_.gate, parts_.clock, parts_.changes, parts_.trees, parts_.snapshots, parts_.charge, parts_.space,
                          readers_}};
};

// --- making one -------------------------------------------------------------------------------------------------------------------

TEST_F(ProtectionTest, MakesOneWhenTheIntervalHasPassedAndSomethingIsNew) {
  set(Mode::on);
  EXPECT_TRUE(decide().makes_one) << "the state of the mount is in none yet";
  change_something();
  parts_.clock.advance(30 * kSecond - 1);
  EXPECT_FALSE(protection_.is_due());
  EXPECT_FALSE(decide().makes_one);
  parts_.clock.advance(1);
  EXPECT_TRUE(protection_.is_due());
  EXPECT_TRUE(decide().makes_one);
}

TEST_F(ProtectionTest, MakesNoneWhereTheNewestHasThisState) {
  set(Mode::on);
  format::SnapshotItem same = automatic(2, 100, 0);
  same.inode_file = made_.super.inode_file;
  keep({same});
  parts_.clock.advance(1000 * kSecond);
  EXPECT_FALSE(protection_.is_due());
  EXPECT_FALSE(protection_.is_pending());
  EXPECT_FALSE(decide(true).makes_one) << "nor at the end";
  change_something();
  EXPECT_TRUE(protection_.is_due());
  EXPECT_TRUE(protection_.is_pending());
  EXPECT_TRUE(decide().makes_one);
}

TEST_F(ProtectionTest, TheLastCheckpointDoesNotWaitForTheInterval) {
  set(Mode::on);
  EXPECT_TRUE(decide().makes_one);
  change_something();
  EXPECT_FALSE(decide().makes_one);
  EXPECT_TRUE(decide(true).makes_one);
}

TEST_F(ProtectionTest, TheIntervalBeginsWithAMountThatFindsItsStateKept) {
  set(Mode::on);
  format::SnapshotItem same = automatic(2, 100, 0);
  same.inode_file = made_.super.inode_file;
  keep({same});
  protection_.begin();
  change_something();
  EXPECT_FALSE(protection_.is_due());
  parts_.clock.advance(30 * kSecond);
  EXPECT_TRUE(protection_.is_due());
}

TEST_F(ProtectionTest, MakesNoneWithoutRoomAndDoesNotTryAgainAtOnce) {
  set(Mode::on);
  const auto too_much = static_cast<std::int64_t>(free_blocks());
  charge_blocks(too_much);
  change_something();
  EXPECT_FALSE(protection_.is_due());
  EXPECT_FALSE(protection_.is_pending());
  EXPECT_FALSE(decide().makes_one);
  charge_blocks(-too_much);
  EXPECT_TRUE(protection_.is_pending());
  EXPECT_FALSE(protection_.is_due()) << "it would make a checkpoint each time that a little room comes and goes";
  parts_.clock.advance(30 * kSecond);
  EXPECT_TRUE(protection_.is_due());
}

// Half of what is free, and in that a quarter of the metadata and a segment.
TEST_F(ProtectionTest, TheLeastRoomForOneIsCountedToTheBlock) {
  set(Mode::on);
  std::uint64_t needed = 0;
  {
    const Gate::Pass pass(parts_.gate);
    needed = parts_.charge.nodes_to_hold() / 4 + test::kPartSegmentBlocks;
  }
  while (free_blocks() >= 2 * needed) {
    EXPECT_TRUE(protection_.is_due()) << free_blocks();
    charge_blocks(free_blocks() > 4 * needed ? static_cast<std::int64_t>(needed) : 1);
  }
  EXPECT_FALSE(protection_.is_due());
  EXPECT_GT(free_blocks(), needed) << "twice as much is wanted, since half is the cleaner's";
}

// --- giving up for room -----------------------------------------------------------------------------------------------------------

TEST_F(ProtectionTest, AnOperationThatNeedsRoomGetsHalfOrAllOldestFirst) {
  set(Mode::on);
  keep_three(10);
  EXPECT_EQ(leaving(), Serials{});
  change_something();
  parts_.clock.advance(30 * kSecond);
  ASSERT_TRUE(protection_.ask_for_room(Need::half));
  EXPECT_TRUE(protection_.is_due());
  const Protection::Decision half = decide();
  EXPECT_EQ(half.leaving, (std::vector{Serial{2}, Serial{3}})) << "one of three is less than half";
  EXPECT_FALSE(half.makes_one) << "it would ask for the room that others wait for";
  EXPECT_EQ(protection_.given_up(), 2U);
  EXPECT_EQ(leaving(), Serials{}) << "it was asked for once";
  ASSERT_TRUE(protection_.ask_for_room(Need::all));
  ASSERT_TRUE(protection_.ask_for_room(Need::half));  // which takes nothing back
  EXPECT_EQ(leaving(), (Serials{2, 3, 4}));
}

TEST_F(ProtectionTest, NobodyIsToldToWaitForRoomOfNone) {
  set(Mode::on);
  EXPECT_FALSE(protection_.ask_for_room(Need::all));
  EXPECT_TRUE(decide().makes_one) << "and that was no request";
}

TEST_F(ProtectionTest, TheyHoldHalfOfWhatIsFreeAndNoMore) {
  set(Mode::leave);
  keep_three(0);
  const std::uint64_t most = most_loose_blocks(free_blocks()), each = most / 3;
  keep({automatic(2, 300, each), automatic(3, 200, each), automatic(4, 100, most - 2 * each)});
  ASSERT_EQ(most_loose_blocks(free_blocks()), most) << "what they hold is nobody's room";
  EXPECT_FALSE(protection_.is_due());
  EXPECT_EQ(leaving(), Serials{});
  keep({automatic(2, 300, each), automatic(3, 200, each), automatic(4, 100, most - 2 * each + 1)});
  EXPECT_TRUE(protection_.is_due());
  EXPECT_EQ(leaving(), Serials{2}) << "the oldest is enough for a block";
}

TEST_F(ProtectionTest, WhatTheNextCheckpointLeavesToThemCountsAsWell) {
  set(Mode::leave);
  keep_three(10);
  EXPECT_FALSE(protection_.is_due());
  {
    const Gate::Pass pass(parts_.gate);
    parts_.changes.active().loose += most_loose_blocks(parts_.charge.free_blocks());
  }
  EXPECT_TRUE(protection_.is_due());
  EXPECT_EQ(leaving(), (Serials{2, 3, 4}));
}

// --- giving up for age -----------------------------------------------------------------------------------------------------------

TEST_F(ProtectionTest, TheNewestFromBeforeTheWindowStays) {
  set(Mode::on, 150);
  keep_three(10);
  EXPECT_EQ(leaving(), Serials{2}) << "3 has the state with which the window begins";
  parts_.clock.advance(50 * kSecond);
  EXPECT_EQ(leaving(), Serials{2}) << "4 is as old as the window";
  parts_.clock.advance(kSecond);
  EXPECT_EQ(leaving(), (Serials{2, 3}));
  EXPECT_EQ(protection_.given_up(), 0U) << "that was not for room";
}

TEST_F(ProtectionTest, AClockThatJumpsMakesNoneOld) {
  set(Mode::on, 3600);
  keep_three(10);
  EXPECT_EQ(leaving(), Serials{});
  parts_.clock.set_wall(10LL * 365 * 86'400 * kSecond);
  EXPECT_EQ(leaving(), Serials{});
  parts_.clock.set_wall(-10LL * 365 * 86'400 * kSecond);
  EXPECT_EQ(leaving(), Serials{});
}

TEST_F(ProtectionTest, RulesThinWhatIsBetweenOthers) {
  set(Mode::on, 10'000, {{100, 0}, {10'000, 1000}});
  keep({automatic(2, 2000, 1), automatic(3, 1600, 1), automatic(4, 1200, 1), automatic(5, 50, 1)});
  EXPECT_EQ(leaving(), Serials{3}) << "2 and 4 are near enough to each other without it";
  EXPECT_EQ(protection_.kept().by_rule, (std::vector<std::uint64_t>{2, 2})) << "with the one that is made now";
  EXPECT_EQ(protection_.kept().oldest_s, 2000U);
}

TEST_F(ProtectionTest, WithoutTheOptionTheyFadeAfterAsLongAsTheyReachedBack) {
  set(Mode::fade, 0);
  keep({automatic(2, 8000, 1), automatic(3, 7000, 1), automatic(4, 1000, 1)});
  EXPECT_EQ(leaving(), Serials{2}) << "they reached back 7000 seconds";
  EXPECT_FALSE(decide().makes_one);
}

TEST_F(ProtectionTest, OnesThatWereAskedForOrAreGoingAreNotItsOwn) {
  set(Mode::off);
  format::SnapshotItem asked = automatic(2, 300, 0), going = automatic(3, 200, 10);
  asked.automatic = false;
  asked.name = "asked";
  going.deleting = true;
  keep({asked, going, automatic(4, 100, 10)});
  EXPECT_EQ(leaving(), Serials{4});
}

// --- those that somebody uses -----------------------------------------------------------------------------------------------------

TEST_F(ProtectionTest, OneInUseGoesForRoomAsTheLastAndForAgeNever) {
  set(Mode::on, 10);
  protection_.hold_for([] { return std::vector{Serial{2}}; });
  keep_three(10);
  EXPECT_EQ(leaving(), Serials{3}) << "4 is the newest from before the window";
  EXPECT_EQ(protection_.given_up(), 0U);
  ASSERT_TRUE(protection_.ask_for_room(Need::half));
  EXPECT_EQ(leaving(), (Serials{3, 4}));
  ASSERT_TRUE(protection_.ask_for_room(Need::all));
  EXPECT_EQ(leaving(), (Serials{3, 4, 2}));
}

TEST_F(ProtectionTest, OneThatAToolReadsGoesForNobodyUntilTheToolHasEnded) {
  set(Mode::on, 10);
  keep_three(10);
  ASSERT_TRUE(readers_.hold(Serial{2}, 1, 60).ok());
  ASSERT_TRUE(protection_.ask_for_room(Need::all));
  EXPECT_EQ(leaving(), (Serials{3, 4}));
  for (const std::uint64_t serial : {3, 4}) ASSERT_EQ(readers_.hold(Serial{serial}, 1, 60).error().code(), Errc::stale);
  keep({automatic(2, 300, 10)});
  EXPECT_FALSE(protection_.ask_for_room(Need::all)) << "nobody may wait for it";
  parts_.clock.advance(60 * kSecond);
  ASSERT_TRUE(protection_.ask_for_room(Need::all));
  EXPECT_EQ(leaving(), Serials{2});
}

TEST_F(ProtectionTest, TurnedOffItDoesNotAskAgainAndAgainForOnesInUse) {
  set(Mode::off);
  keep_three(10);
  protection_.hold_for([] { return std::vector{Serial{3}}; });
  EXPECT_TRUE(protection_.is_due());
  EXPECT_EQ(leaving(), (Serials{2, 4}));
  keep({automatic(3, 200, 10)});
  EXPECT_FALSE(protection_.is_due()) << "each checkpoint would be made for nothing";
  set(Mode::off);
  EXPECT_TRUE(protection_.is_due()) << "the option given once more is a new request";
}

}  // namespace
}  // namespace varve::checkpoint
