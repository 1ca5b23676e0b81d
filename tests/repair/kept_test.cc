// Damage where there are snapshots: what only they hold never harms what is in use, and what is whole of them stays.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "check/checking.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "fsck/recovery.h"
#include "repair/fsck_image.h"
#include "repair/kept_image.h"
#include "repair/node_surgery.h"
#include "repair/repair.h"
#include "segments/log_clock.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/pattern.h"

namespace varve::repair::test {
namespace {

using check::Code;
using testing::HasSubstr;
using varve::test::FsFixture;
using varve::test::ManualClock;
using varve::test::pattern_bytes;
using Change = snapshots::SnapshotChange;

class KeptRepair : public testing::Test {
 protected:
  void SetUp() override {
    image = populated_with_snapshots(false);
    const auto report = check::check(*image, {.verify_data = true});
    ASSERT_TRUE(report.ok());
    ASSERT_EQ(report->errors(), 0U) << check::test::lines(*report);
    owners = owners_of(*image);
    before = states_of(*image);
    ASSERT_EQ(before.in_use.error, "");
    ASSERT_EQ(before.snapshots.size(), 2U);
    ASSERT_GT(before.snapshots["one"].paths.size(), before.in_use.paths.size());
  }
  // The first one that fits.
  template <class Fits>
  BlockAddr block(Fits fits) const {
    const auto at = std::ranges::find_if(owners, fits);
    EXPECT_NE(at, owners.end());
    return at == owners.end() ? BlockAddr{} : at->first;
  }
  BlockAddr node_of_snapshot(const std::string& name, unsigned level) const {
    return block([&](const auto& entry) {
      return entry.second.snapshot == name && is_node(entry.second, format::TreeId::inode_file) && entry.second.owner.level == level;
    });
  }
  std::uint8_t root_level(const std::string& name) const {
    std::uint8_t level = 0;
    for (const auto& [address, owned] : owners)
      if (owned.snapshot == name && is_node(owned, format::TreeId::inode_file)) level = std::max(level, owned.owner.level);
    return level;
  }
  void expect_in_use_unharmed(const io::MemDevice& device) {
    const Seen now = look_at(*device.snapshot());
    EXPECT_EQ(now.error, "");
    EXPECT_EQ(now.paths, before.in_use.paths);
    EXPECT_EQ(lost_of(before.in_use, now), 0U);
  }

  std::unique_ptr<io::MemDevice> image;
  Owners owners;
  States before;
};

TEST_F(KeptRepair, WhereNothingIsWrongNothingIsDone) {
  const auto copy = image->snapshot();
  const Outcome done = repaired(*copy);
  EXPECT_TRUE(done.actions.empty()) << actions_of(done);
  EXPECT_EQ(first_difference(*copy, *image), std::nullopt);
}

TEST_F(KeptRepair, DamagedDataIsNamedWithTheSnapshotAndStays) {
  const BlockAddr at = block([](const auto& entry) {
    return entry.second.snapshot == "one" && entry.second.owner.owner == format::Owner::file_block && entry.second.owner.block == 3;
  });
  flip_bit(*image, at, 4711);
  const Outcome done = repaired(*image);
  EXPECT_TRUE(done.actions.empty()) << actions_of(done);
  EXPECT_THAT(check::test::lines(done.after), HasSubstr("snapshot one: "));
  EXPECT_EQ(done.after.problems.count(Code::data_damaged), 1U);
  EXPECT_EQ(done.errors_left(), 1U);
  FsckImage file;
  file.save(*image);
  EXPECT_EQ(file.fsck({"-n", "-f", "--data"}), 4);
  EXPECT_THAT(file.said(), HasSubstr("snapshot one: file block 3\n"));
  EXPECT_THAT(file.said(), HasSubstr("varve snapshot delete DIRECTORY one\n"));
  EXPECT_THAT(file.said(), testing::Not(HasSubstr("from a backup"))) << "what is in use is whole";
  expect_in_use_unharmed(*image);
  const States now = states_of(*image);
  EXPECT_EQ(lost_of(before.snapshots["one"], now.snapshots.at("one")), 1U);
  EXPECT_EQ(lost_of(before.snapshots["two"], now.snapshots.at("two")), 0U);
  expect_whole_without_snapshots(*image);
}

// A leaf has extents, entries of directories and attributes; there is nothing to do about one, and nothing else is lost.
TEST_F(KeptRepair, ADamagedLeafCostsASnapshotWhatIsInItAndNothingElse) {
  std::set<std::string> with_loss;
  std::uint64_t tried = 0, spared = 0;  // some files, at least
  for (const auto& [at, owned] : owners) {
    if (owned.snapshot.empty() || !is_node(owned, format::TreeId::inode_file) || owned.owner.level > 0) continue;
    const auto copy = image->snapshot();
    flip_bit(*copy, at, 9999);
    const Outcome done = repaired(*copy);
    EXPECT_TRUE(done.actions.empty()) << actions_of(done);
    EXPECT_EQ(done.before.problems.count(Code::snapshot_damaged), 1U) << check::test::lines(done.before);
    EXPECT_EQ(errors_but_damage(done.before), 0U) << check::test::lines(done.before);
    EXPECT_THAT(check::test::lines(done.before), HasSubstr("snapshot " + owned.snapshot + ": "));
    expect_in_use_unharmed(*copy);
    const States now = states_of(*copy);
    const std::uint64_t lost = lost_of(before.snapshots[owned.snapshot], now.snapshots.at(owned.snapshot));
    if (lost > 0) with_loss.insert(owned.snapshot);
    ++tried;
    if (lost < before.snapshots[owned.snapshot].paths.size()) ++spared;
    expect_whole_without_snapshots(*copy);
    if (HasFailure()) break;
  }
  EXPECT_EQ(with_loss, (std::set<std::string>{"one", "two"}));
  EXPECT_GE(spared + 2, tried) << "only the leaf that has the root directory costs all of a snapshot";
}

TEST_F(KeptRepair, ASnapshotWithoutARootIsGivenUpAndItsSpaceComesBack) {
  for (const std::string name : {"one", "two"}) {
    const auto copy = image->snapshot();
    flip_bit(*copy, node_of_snapshot(name, root_level(name)), 9999);
    EXPECT_EQ(repair(*copy->snapshot(), fsck::recover, {.only_safe = true}).error().code(), Errc::needs_fsck);
    const Outcome done = repaired(*copy);
    EXPECT_EQ(done.before.problems.count(Code::snapshot_lost), 1U) << check::test::lines(done.before);
    EXPECT_EQ(done.actions.count(ActionCode::snapshot_given_up), 1U) << actions_of(done);
    EXPECT_THAT(actions_of(done), HasSubstr(name));
    EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
    expect_in_use_unharmed(*copy);
    const States now = states_of(*copy);
    ASSERT_EQ(now.snapshots.size(), 1U);
    const auto& [other, seen] = *now.snapshots.begin();
    EXPECT_NE(other, name);
    EXPECT_EQ(lost_of(before.snapshots[other], seen), 0U);
    expect_whole_without_snapshots(*copy);
  }
}

// Lists, places and all that a snapshot says of itself: what can be told from the rest is made anew.
TEST_F(KeptRepair, NodesOfTheTables) {
  std::uint64_t nodes = 0, kept = 0;
  for (const auto& [at, owned] : owners) {
    if (!is_node(owned, format::TreeId::snapshots)) continue;
    ++nodes;
    const auto copy = image->snapshot();
    flip_bit(*copy, at, 9999);
    const Outcome done = repaired(*copy);
    EXPECT_EQ(errors_but_damage(done.after), 0U) << check::test::lines(done.after) << actions_of(done);
    expect_in_use_unharmed(*copy);
    const States now = states_of(*copy);
    if (owned.owner.level > 0) {
      EXPECT_EQ(done.actions.count(ActionCode::snapshot_items_lost), 0U) << "all leaves are found";
      EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
      EXPECT_EQ(now.snapshots.size(), 2U);
    }
    for (const auto& [name, seen] : now.snapshots)
      if (lost_of(before.snapshots[name], seen) == 0) ++kept;
    expect_whole_without_snapshots(*copy);
    if (HasFailure()) break;
  }
  EXPECT_GT(nodes, 3U) << "there is nothing but a root";
  EXPECT_GT(kept, nodes) << "what was lost could be told from the rest";
}

TEST_F(KeptRepair, MapsAreRebuiltWithWhatSnapshotsHold) {
  for (const format::TreeId tree : {format::TreeId::reverse_map, format::TreeId::free_map})
    for (const bool whole : {false, true}) {
      const auto copy = image->snapshot();
      for (const auto& [at, owned] : owners)
        if (is_node(owned, tree) && (whole || owned.owner.level == 0)) {
          wipe(*copy, at);
          if (!whole) break;
        }
      const Outcome done = repaired(*copy);
      EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
      EXPECT_TRUE(done.actions.is_safe()) << actions_of(done);
      EXPECT_EQ(done.after.super.snapshots.held_blocks, done.before.super.snapshots.held_blocks);
      const States now = states_of(*copy);
      for (const std::string name : {"one", "two"}) EXPECT_EQ(lost_of(before.snapshots[name], now.snapshots.at(name)), 0U);
      expect_in_use_unharmed(*copy);
      expect_whole_without_snapshots(*copy);
    }
}

// Clocks have begun anew: what came after the snapshot is held as well, and nothing but its list says so.
TEST(KeptRepairs, WhatIsHeldBecauseNobodyKnowsItsAgeStaysHeld) {
  const auto image = populated_image(false);
  {
    ManualClock clock;
    SeededRandom random(7);
    FsFixture fixture(*image, varve::test::test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    fixture.store().log_clock().advance(1ULL << 32);
    ASSERT_TRUE(fixture.snapshot({Change::Kind::create, "kept", {}}).ok());
    ASSERT_TRUE(fixture.make("/later", 0100644).ok());
    ASSERT_TRUE(fixture.write(*fixture.resolve("/later"), 0, pattern_bytes(77, 0, 300'000)).ok());
    ASSERT_TRUE(fixture.checkpoint().ok());
    ASSERT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, kRootIno, "later"); }).ok());
    ASSERT_TRUE(fixture.unmount().ok());
  }
  EXPECT_TRUE(repaired(*image->snapshot()).actions.empty());
  const auto owned = owners_of(*image);
  const States before = states_of(*image);
  for (const format::TreeId tree : {format::TreeId::reverse_map, format::TreeId::free_map, format::TreeId::snapshots}) {
    const auto copy = image->snapshot();
    for (const auto& [at, owner] : owned)
      if (is_node(owner, tree) && owner.owner.level == 0) flip_bit(*copy, at, 9999);
    const Outcome done = repaired(*copy);
    EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
    const std::uint64_t held = done.after.super.snapshots.held_blocks;
    if (tree == format::TreeId::snapshots) EXPECT_LT(held, 70U) << "without the list nobody holds them";
    else EXPECT_EQ(held, done.before.super.snapshots.held_blocks);
    EXPECT_EQ(lost_of(before.snapshots.at("kept"), states_of(*copy).snapshots.at("kept")), 0U);
    expect_whole_without_snapshots(*copy);
  }
}

// What stands in an old tree is older than what is lost: it must not pass for it (H58).
TEST_F(KeptRepair, H58_a_snapshots_leaf_does_not_pass_for_one_that_is_lost) {
  const auto is_live_node = [](unsigned level) {
    return [level](const auto& entry) {
      return entry.second.snapshot.empty() && is_node(entry.second, format::TreeId::inode_file) && entry.second.owner.level == level;
    };
  };
  // An interior node is lost: all leaves below it are found, and only they. Nothing older comes in.
  const auto copy = image->snapshot();
  wipe(*copy, block(is_live_node(1)));
  const Outcome done = repaired(*copy);
  EXPECT_TRUE(done.actions.is_safe()) << actions_of(done);
  EXPECT_GT(done.actions.count(ActionCode::leaves_found), 0U);
  EXPECT_EQ(errors_but_damage(done.after), 0U) << check::test::lines(done.after);
  expect_in_use_unharmed(*copy);
  // A leaf is lost as well: whatever takes its place is said to be older.
  for (const auto& [at, owned] : owners) {
    if (!is_live_node(0)(std::pair(at, owned))) continue;
    const auto worse = image->snapshot();
    wipe(*worse, block(is_live_node(1)));
    wipe(*worse, at);
    const Outcome outcome = repaired(*worse);
    EXPECT_EQ(errors_but_damage(outcome.after), 0U) << check::test::lines(outcome.after);
    EXPECT_EQ(unexcused(before.in_use, look_at(*worse->snapshot()), outcome.actions), "") << actions_of(outcome);
    expect_whole_without_snapshots(*worse);
    if (HasFailure()) break;
  }
}

// A node that the snapshot shares with the filesystem in use: that gets a new one, and then only the snapshot has it.
TEST_F(KeptRepair, ASharedNodeThatIsLostStaysWithTheSnapshot) {
  for (const unsigned level : {0U, 1U}) {
    const auto device = populated_image(false, 400);
    ManualClock clock;
    SeededRandom random(7);
    FsFixture fixture(*device, varve::test::test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    ASSERT_TRUE(fixture.snapshot({Change::Kind::create, "kept", {}}).ok());
    ASSERT_TRUE(fixture.make("/made-last", 0100644).ok());
    ASSERT_TRUE(fixture.unmount().ok());
    const Seen seen = look_at(*device->snapshot());
    std::vector<BlockAddr> nodes;
    for (const auto& [at, owned] : owners_of(*device))
      if (owned.snapshot.empty() && is_node(owned, format::TreeId::inode_file) && owned.owner.level == level) nodes.push_back(at);
    ASSERT_GT(nodes.size(), level ? 0U : 3U);
    const auto copy = device->snapshot();
    wipe(*copy, nodes.front());
    const Outcome done = repaired(*copy);
    EXPECT_EQ(errors_but_damage(done.after), 0U) << check::test::lines(done.after) << actions_of(done);
    EXPECT_EQ(unexcused(seen, look_at(*copy->snapshot()), done.actions), "") << actions_of(done);
    expect_whole_without_snapshots(*copy);
  }
}

TEST_F(KeptRepair, SuperblocksAreFoundWithTheirSnapshots) {
  for (BlockAddr at{0}; at.v < image->geometry().blocks(); ++at) {
    std::array<std::byte, kBlockSize> bytes;
    image->peek(at.v * kBlockSize, bytes);
    if (format::decode_superblock(bytes).ok()) wipe(*image, at);
  }
  const Outcome done = repaired(*image, {.search = true, .verify_data = true});
  EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
  expect_in_use_unharmed(*image);
  const States now = states_of(*image);
  for (const std::string name : {"one", "two"}) EXPECT_EQ(lost_of(before.snapshots[name], now.snapshots.at(name)), 0U);
  expect_whole_without_snapshots(*image);
}

TEST_F(KeptRepair, WhatIsDamagedOfASnapshotStopsNoBoot) {
  for (const unsigned level : {0U, unsigned{root_level("one")}}) {
    const auto copy = image->snapshot();
    flip_bit(*copy, node_of_snapshot("one", level), 9999);
    FsckImage file;
    file.save(*copy);
    EXPECT_EQ(file.fsck({"-p", "-f"}), 0) << file.said();
    EXPECT_EQ(file.bytes(), FsckImage::bytes_of(*copy));
    EXPECT_EQ(file.fsck({"-n"}), 4) << file.said();
    // Beside what can be repaired without a loss.
    wipe(*copy, block([](const auto& entry) { return is_node(entry.second, format::TreeId::free_map) && entry.second.owner.level == 0; }));
    file.save(*copy);
    EXPECT_EQ(file.fsck({"-p", "-f"}), level == 0 ? 1 : 4) << file.said();
  }
}

// It is met by the cleaner, and by checkpoints that let go of what it has.
TEST_F(KeptRepair, WhatIsDamagedOfASnapshotIsNoHindrance) {
  std::vector<BlockAddr> damaged{node_of_snapshot("one", root_level("one")), node_of_snapshot("one", 0), node_of_snapshot("two", 0),
                                 block([](const auto& entry) {
                                   return entry.second.snapshot == "one" && entry.second.owner.owner == format::Owner::file_block;
                                 })};
  for (const BlockAddr at : damaged) {
    const auto copy = image->snapshot();
    flip_bit(*copy, at, 9999);
    ManualClock clock;
    clock.set_elapsed(9'000'000'000'000);
    SeededRandom random(9);
    FsFixture fixture(*copy, varve::test::test_options(clock, random));
    ASSERT_TRUE(fixture.mount().ok());
    for (const char* strategy : {"copying", "compacting"}) {
      EXPECT_TRUE(fixture.clean(strategy).ok());
      for (std::uint64_t i = 0; i < 40; ++i) (void)fixture.move(i);
      ASSERT_TRUE(fixture.make(std::string("/") + strategy, 0100644).ok());
      ASSERT_TRUE(fixture.write(*fixture.resolve(std::string("/") + strategy), 0, pattern_bytes(77, 0, 1'000'000)).ok());
      ASSERT_TRUE(fixture.checkpoint().ok());
    }
    EXPECT_FALSE(fixture.store().faults().read_only()) << fixture.store().faults().reason();
    ASSERT_TRUE(fixture.unmount().ok());
    const auto report = check::check(*copy, {.verify_data = true});
    ASSERT_TRUE(report.ok());
    EXPECT_EQ(errors_but_damage(*report), report->problems.count(Code::snapshot_lost)) << check::test::lines(*report);
    expect_whole_without_snapshots(*copy);
  }
}

// First the trees, then the log, which goes on from them.
TEST(KeptRepairs, ALogIsReplayedOnWhatHasBeenRepaired) {
  const auto image = populated_with_snapshots(true);
  const Seen expected = look_at(*image->snapshot());
  ASSERT_EQ(expected.error, "");
  const States before = states_of(*image);
  for (const auto& [at, owned] : owners_of(*image)) {
    if (owned.owner.owner != format::Owner::node || owned.owner.tree == format::TreeId::inode_file || owned.owner.level == 0) continue;
    const auto copy = image->snapshot();
    wipe(*copy, at);
    const Outcome done = repaired(*copy);
    EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after) << actions_of(done);
    EXPECT_EQ(done.actions.count(ActionCode::log_replayed), 1U) << actions_of(done);
    EXPECT_EQ(lost_of(expected, look_at(*copy->snapshot())), 0U);
    const States now = states_of(*copy);
    for (const std::string name : {"one", "two"}) EXPECT_EQ(lost_of(before.snapshots.at(name), now.snapshots.at(name)), 0U);
    expect_whole_without_snapshots(*copy);
    if (testing::Test::HasFailure()) break;
  }
}

// A bit of each block that only snapshots hold, in turn.
TEST_F(KeptRepair, NoDamageInWhatOnlySnapshotsHoldHarmsWhatIsInUse) {
  std::uint64_t tried = 0;
  for (const auto& [at, owned] : owners) {
    if (owned.snapshot.empty() || at.v % 5 != 0) continue;
    ++tried;
    const auto copy = image->snapshot();
    flip_bit(*copy, at, at.v * 37 % (8 * kBlockSize));
    const Outcome done = repaired(*copy);
    EXPECT_EQ(errors_but_damage(done.after), 0U) << check::test::lines(done.after);
    EXPECT_EQ(errors_but_damage(done.before), done.before.problems.count(Code::snapshot_lost)) << check::test::lines(done.before);
    expect_in_use_unharmed(*copy);
    if (HasFailure()) break;
  }
  EXPECT_GT(tried, 50U);
}

}  // namespace
}  // namespace varve::repair::test
