// The walk reads what only snapshots hold, once, and says whose it is; on a filesystem in use and on a mount that shows a snapshot.
#include <gtest/gtest.h>

#include <set>

#include "device/faults.h"
#include "fs/engine.h"
#include "image_tools.h"
#include "scrub/walk.h"
#include "segments/counters.h"
#include "store/store.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/world.h"
#include "tree/item_tree.h"
#include "tree/trees.h"

namespace varve::scrub {
namespace {

using test::FsFixture;
using test::World;
using test::WorldParameters;
using Change = snapshots::SnapshotChange;

constexpr std::uint64_t kBlocks = 40;  // of each file

struct Noticed {
  std::vector<Finding> findings;
  std::uint64_t blocks = 0;

  std::set<std::uint64_t> addresses() const {
    std::set<std::uint64_t> all;
    for (const Finding& f : findings)
      for (std::uint64_t i = 0; i < f.blocks; ++i) all.insert(f.address.v + i);
    return all;
  }
};

Noticed walked(store::Store& store) {
  Noticed noticed;
  Walk walk(store, {}, [&](const Finding& finding) { noticed.findings.push_back(finding); });
  for (bool done = false; !done;) {
    const Walk::Step step = walk.step();
    noticed.blocks += step.blocks;
    done = step.done;
  }
  return noticed;
}

// Three states of some files; "one" and "two" are kept, the third is in use.
class KeptWalk : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::good(world.start()));
    ASSERT_TRUE(world.fixture.make("/d", 0040755).ok());
    for (int i = 0; i < 30; ++i) ASSERT_TRUE(world.fixture.make(path(i), 0100644).ok());
    write(0, 30, 1);
    snapshot(Change::Kind::create, "one");
    write(0, 20, 2);
    snapshot(Change::Kind::create, "two");
    write(0, 10, 3);
    ASSERT_TRUE(world.fixture.checkpoint().ok());
  }
  static std::string path(int i) { return "/d/f" + std::to_string(i); }
  Ino file(int i) { return *world.fixture.resolve(path(i)); }
  static std::uint64_t seed(int i, int state) { return static_cast<std::uint64_t>(1000 * state + i); }
  static std::vector<std::byte> content(int i, int state, std::uint64_t block) {
    return test::pattern_bytes(seed(i, state), block * kBlockSize, kBlockSize);
  }
  void write(int first, int end, int state) {
    for (int i = first; i < end; ++i)
      ASSERT_TRUE(world.fixture.write(file(i), 0, test::pattern_bytes(seed(i, state), 0, kBlocks * kBlockSize)).ok());
  }
  void snapshot(Change::Kind kind, const std::string& name) { ASSERT_TRUE(world.fixture.snapshot({kind, name, {}}).ok()); }
  void clean() {
    ASSERT_TRUE(world.fixture.clean("compacting").ok());
    ASSERT_TRUE(world.fixture.checkpoint().ok());
  }
  BlockAddr only_place(int i, int state, std::uint64_t block) {
    // What was moved may still stand where it was: only one of the places is live.
    const auto places = test::find_block(world.device, content(i, state, block));
    for (const BlockAddr at : places) {
      test::flip_bit(world.device, at, 7);
      const bool lives = !walked(store()).findings.empty();
      test::flip_bit(world.device, at, 7);
      if (lives) return at;
    }
    ADD_FAILURE() << "no live block of file " << i << ", state " << state;
    return {};
  }
  store::Store& store() { return world.fixture.store(); }
  tree::TreeView view() { return store().trees().own_view(); }

  World world{WorldParameters{.bytes = 64u << 20, .image = {}, .lockstep = {}, .options = {}}};
};

TEST_F(KeptWalk, ReadsWhatTheyHoldAndEverythingElseOnce) {
  ASSERT_GT(view().tables.held_data, 30 * kBlocks - 1);
  Noticed noticed = walked(store());
  EXPECT_TRUE(noticed.findings.empty()) << to_text(noticed.findings.front());
  EXPECT_EQ(noticed.blocks, view().live_blocks - 1) << "all but the superblock's image, which has its own check";
  clean();
  ASSERT_GT(view().tables.places, 0U);
  noticed = walked(store());
  EXPECT_TRUE(noticed.findings.empty()) << to_text(noticed.findings.front());
  EXPECT_EQ(noticed.blocks, view().live_blocks - 1);
}

// Nothing that lives escapes: a bit of each block of the device in turn. Nodes of old trees and of the tables are among them.
TEST_F(KeptWalk, FindsAFlippedBitInEveryLiveBlock) {
  clean();
  std::set<std::uint64_t> noticed, in_snapshots, nodes_in_snapshots;
  const std::vector<std::byte> zeros(kBlockSize);
  for (std::uint64_t at = store().super().first_segment.v; at + 1 < world.device.geometry().blocks(); ++at) {
    if (test::block_at(world.device, BlockAddr{at}) == zeros) continue;
    test::flip_bit(world.device, BlockAddr{at}, at * 37 % (8 * kBlockSize));
    const Noticed found = walked(store());
    test::flip_bit(world.device, BlockAddr{at}, at * 37 % (8 * kBlockSize));
    if (found.findings.empty()) continue;
    ASSERT_EQ(found.addresses(), std::set<std::uint64_t>{at});
    noticed.insert(at);
    if (!found.findings[0].is_in_snapshot()) continue;
    in_snapshots.insert(at);
    if (found.findings[0].kind == Finding::Kind::node) nodes_in_snapshots.insert(at);
  }
  EXPECT_EQ(noticed.size(), view().live_blocks - 1);
  EXPECT_EQ(in_snapshots.size(), view().tables.held_blocks);
  EXPECT_EQ(nodes_in_snapshots.size(), view().tables.held_blocks - view().tables.held_data);
  EXPECT_GT(nodes_in_snapshots.size(), 0U);
}

TEST_F(KeptWalk, NamesTheSnapshotTheFileAndThePlace) {
  // State 1 of file 15 is in "one"; file 5 has had three, and both snapshots have one of their own.
  for (const auto& [i, state, name] : {std::tuple(15, 1, "one"), {5, 1, "one"}, {5, 2, "two"}}) {
    const auto places = test::find_block(world.device, content(i, state, 17));
    ASSERT_EQ(places.size(), 1U);
    test::flip_bit(world.device, places[0], 4711);
    const Noticed noticed = walked(store());
    test::flip_bit(world.device, places[0], 4711);
    ASSERT_EQ(noticed.findings.size(), 1U);
    const Finding& f = noticed.findings[0];
    EXPECT_EQ(f.kind, Finding::Kind::data);
    EXPECT_EQ(f.snapshot, name);
    EXPECT_EQ(f.snapshots, 1U);
    EXPECT_EQ(f.ino, file(i));
    EXPECT_EQ(f.file_block, 17U);
    EXPECT_EQ(f.address, places[0]);
    EXPECT_EQ(to_text(f).find(fmt::format("snapshot {}: inode", name)), 0U) << to_text(f);
  }
  EXPECT_FALSE(store().faults().read_only()) << "it is nothing to the filesystem in use";
}

TEST_F(KeptWalk, SaysHowManyHaveIt) {
  write(20, 30, 4);  // both have had state 1
  ASSERT_TRUE(world.fixture.checkpoint().ok());
  test::flip_bit(world.device, test::find_block(world.device, content(25, 1, 3)).at(0), 99);
  const Noticed noticed = walked(store());
  ASSERT_EQ(noticed.findings.size(), 1U);
  EXPECT_EQ(noticed.findings[0].snapshot, "two");
  EXPECT_EQ(noticed.findings[0].snapshots, 2U);
}

TEST_F(KeptWalk, WhatTheFilesystemInUseHasTooIsNamedByThat) {
  test::flip_bit(world.device, test::find_block(world.device, content(25, 1, 3)).at(0), 99);
  const Noticed noticed = walked(store());
  ASSERT_EQ(noticed.findings.size(), 1U);
  EXPECT_FALSE(noticed.findings[0].is_in_snapshot());
}

// Until the next checkpoint no list has it.
TEST_F(KeptWalk, WhatAFileHasJustLetGoOfStaysASnapshots) {
  test::flip_bit(world.device, test::find_block(world.device, content(25, 1, 3)).at(0), 99);
  write(25, 26, 4);
  for (int turn = 0; turn < 2; ++turn) {
    const Noticed noticed = walked(store());
    ASSERT_EQ(noticed.findings.size(), 1U) << turn;
    EXPECT_EQ(noticed.findings[0].snapshot, "two") << turn;
    EXPECT_EQ(noticed.findings[0].ino, file(25)) << turn;
    ASSERT_TRUE(world.fixture.checkpoint().ok());
  }
}

TEST_F(KeptWalk, FollowsWhatTheCleanerHasMoved) {
  clean();
  const BlockAddr place = only_place(15, 1, 20);
  test::flip_bit(world.device, place, 4711);
  const Noticed noticed = walked(store());
  ASSERT_EQ(noticed.findings.size(), 1U);
  EXPECT_EQ(noticed.findings[0].snapshot, "one");
  EXPECT_EQ(noticed.findings[0].ino, file(15));
  EXPECT_EQ(noticed.findings[0].file_block, 20U);
}

TEST_F(KeptWalk, ADamagedNodeSaysWhatHangsOnIt) {
  const auto item = store().snapshots().find("one");
  ASSERT_TRUE(item);
  const auto root = tree::get_root(*std::make_unique<tree::BlockingSource>(store().trees().cache(), store().device()),
                                    {item->inode_file, item->inode_file_level});
  ASSERT_TRUE(root.ok());
  ASSERT_GT(item->inode_file_level, 0);
  const auto& child = (*root)->children()[0];
  test::flip_bit(world.device, child.ref.address, 8 * 4000);  // in what it holds, not in what it says of itself
  const Noticed noticed = walked(store());
  ASSERT_EQ(noticed.findings.size(), 1U);
  const Finding& f = noticed.findings[0];
  EXPECT_EQ(f.kind, Finding::Kind::node);
  EXPECT_EQ(f.snapshot, "one");
  EXPECT_EQ(f.level, item->inode_file_level - 1);
  EXPECT_EQ(f.first, format::kMinKey);
  EXPECT_EQ(f.bound, (*root)->children()[1].first);
}

TEST_F(KeptWalk, WhatADeletedOneHeldIsNothingToReport) {
  test::flip_bit(world.device, test::find_block(world.device, content(15, 1, 17)).at(0), 4711);
  EXPECT_EQ(walked(store()).findings.size(), 1U);
  snapshot(Change::Kind::remove, "one");
  EXPECT_TRUE(walked(store()).findings.empty());
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_TRUE(walked(store()).findings.empty());
}

TEST_F(KeptWalk, GoesOnInTheMiddleOfAList) {
  std::uint64_t blocks = 0;
  Position at{format::TreeId::snapshots, format::kMinKey};
  unsigned steps = 0;
  Walk walk(store(), at, [](const Finding& f) { ADD_FAILURE() << to_text(f); });
  for (bool done = false; !done; ++steps) {
    const Walk::Step step = walk.step();
    EXPECT_LE(step.blocks, 2 * Walk::kStepBlocks) << "lists are longer than that";
    blocks += step.blocks;
    done = step.done;
  }
  EXPECT_GT(steps, 3U);
  EXPECT_GE(blocks, view().tables.held_blocks);
  // A mark on the disk leads to the beginning of a piece.
  EXPECT_EQ(walk.position().tree, format::TreeId::snapshots);
}

// Blocks have been moved since, and others written where they stood.
TEST_F(KeptWalk, AMountOfASnapshotRaisesNoFalseAlarm) {
  clean();
  write(0, 30, 5);
  clean();
  ASSERT_GT(view().tables.places, 0U);
  const BlockAddr damaged = only_place(15, 2, 20);
  ASSERT_TRUE(world.fixture.unmount().ok());
  for (const auto& [name, has_damage] : {std::pair("one", false), {"two", true}}) {
    fs::Options options = world.fixture.options();
    options.read_only = true;
    options.snapshot = name;
    FsFixture shown(world.device, options);
    ASSERT_TRUE(shown.mount().ok());
    Noticed noticed = walked(shown.store());
    EXPECT_TRUE(noticed.findings.empty()) << name << ": " << to_text(noticed.findings.front());
    EXPECT_GT(noticed.blocks, 30 * kBlocks);
    test::flip_bit(world.device, damaged, 4711);
    noticed = walked(shown.store());
    test::flip_bit(world.device, damaged, 4711);
    ASSERT_EQ(noticed.findings.size(), 1U) << name;
    EXPECT_EQ(noticed.findings[0].ino, *shown.resolve(path(15)));
    EXPECT_EQ(noticed.findings[0].file_block, 20U);
    EXPECT_EQ(noticed.findings[0].is_in_snapshot(), !has_damage) << "what it shows itself needs no name";
    ASSERT_TRUE(shown.unmount().ok());
  }
}

// In steps, while snapshots come and go and what they hold is moved: no false alarm.
TEST(WalkOfKeptStates, IsNotConfused) {
  test::ScriptProfile profile;
  test::crowd(profile);
  profile.steps = 1200;
  profile.checkpoint_weight = 8;
  profile.snapshot_weight = 6;
  profile.clean_weight = 4;
  profile.move_weight = 4;
  profile.strategies = {"copying", "compacting"};
  std::uint64_t walks = 0, checkpoints = 0, held = 0, moved = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    World world({.bytes = 14u << 20, .image = {}, .lockstep = {}, .options = [](fs::Options& o) { o.discard = true; }});
    ASSERT_TRUE(test::good(world.start()));
    const auto report = [&](const Finding& f) { ADD_FAILURE() << "seed " << seed << ": " << to_text(f); };
    auto walk = std::make_unique<Walk>(world.fixture.store(), Position{}, report);
    const test::Script script = test::random_script(seed, profile);
    for (std::size_t at = 0; at < script.size(); at += 3) {
      const test::Script part(script.begin() + static_cast<std::ptrdiff_t>(at),
                              script.begin() + static_cast<std::ptrdiff_t>(std::min(at + 3, script.size())));
      ASSERT_TRUE(test::good(test::run_script(world.steps, part)));
      const tree::TreeView& view = world.fixture.store().trees().own_view();
      held = std::max(held, view.tables.held_blocks);
      moved = std::max(moved, view.tables.places);
      for (int i = 0; i < 3; ++i) {
        if (!walk->step().done) continue;
        walk = std::make_unique<Walk>(world.fixture.store(), Position{}, report);
        ++walks;
      }
    }
    checkpoints += world.fixture.store().counters().checkpoints;
    walk.reset();
    ASSERT_TRUE(test::good(world.finish()));
  }
  EXPECT_GT(walks, 10U);
  EXPECT_GT(checkpoints, 100U);
  EXPECT_GT(held, 0U);
  EXPECT_GT(moved, 0U);
}

}  // namespace
}  // namespace varve::scrub
