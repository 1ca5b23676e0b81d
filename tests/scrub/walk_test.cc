// The walk finds what is damaged, names it, and is not confused by a filesystem that changes under it.
#include "scrub/walk.h"

#include <gtest/gtest.h>

#include <set>

#include "checkpoint/superblock_keeper.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "image_tools.h"
#include "segments/counters.h"
#include "store/store.h"
#include "support/fault_device.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/world.h"
#include "tree/trees.h"

namespace varve::scrub {
namespace {

using test::FsFixture;
using test::World;
using test::WorldParameters;

struct Found {
  std::vector<Finding> findings;
  std::uint64_t blocks = 0, unreadable = 0;

  std::set<std::uint64_t> addresses() const {
    std::set<std::uint64_t> all;
    for (const Finding& f : findings)
      for (std::uint64_t i = 0; i < f.blocks; ++i) all.insert(f.address.v + i);
    return all;
  }
};

Found scrubbed(store::Store& store, Position from = {}) {
  Found found;
  Walk walk(store, from, [&](const Finding& finding) { found.findings.push_back(finding); });
  for (bool done = false; !done;) {
    const Walk::Step step = walk.step();
    found.blocks += step.blocks;
    found.unreadable += step.unreadable;
    done = step.done;
  }
  return found;
}

class WalkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::good(world.start()));
    fill(0, 12);
  }
  void fill(int first, int end) {
    for (int i = first; i < end; ++i) {
      const std::string path = "/f" + std::to_string(i);
      ASSERT_TRUE(world.fixture.make(path, 0100644).ok());
      // Sizes around the longest extent; every other one with holes.
      const std::size_t bytes = static_cast<std::size_t>(i) * 9000;
      for (std::size_t at = 0; at < bytes; at += i % 2 ? 8192 : 4096)
        ASSERT_TRUE(
            world.fixture
                .write(file(i), at,
                       test::pattern_bytes(static_cast<std::uint64_t>(i), at, std::min<std::size_t>(4096, bytes - at)))
                .ok());
    }
    checkpoint();
  }
  Ino file(int i) { return *world.fixture.resolve("/f" + std::to_string(i)); }
  void checkpoint() {
    ASSERT_TRUE(world.fixture.checkpoint().ok());
  }
  store::Store& store() { return world.fixture.store(); }

  World world{WorldParameters{.bytes = 64u << 20, .image = {}, .lockstep = {}, .options = {}}};
};

TEST_F(WalkTest, ReadsEveryLiveBlockOnce) {
  fill(12, 60);
  const Found found = scrubbed(store());
  EXPECT_TRUE(found.findings.empty());
  EXPECT_EQ(found.blocks, store().trees().own_view().live_blocks - 1) << "all but the superblock's image, which has its own check";
}

TEST_F(WalkTest, NamesTheFileAndThePlaceOfADamagedBlock) {
  fill(12, 60);
  const std::uint64_t block = 17;
  const auto places = test::find_block(world.device, test::pattern_bytes(50, block * kBlockSize, kBlockSize));
  ASSERT_EQ(places.size(), 1U);
  test::flip_bit(world.device, places[0], 4711);
  const Found found = scrubbed(store());
  ASSERT_EQ(found.findings.size(), 1U);
  const Finding& f = found.findings[0];
  EXPECT_EQ(f.kind, Finding::Kind::data);
  EXPECT_EQ(f.ino, file(50));
  EXPECT_EQ(f.file_block, block);
  EXPECT_EQ(f.address, places[0]);
  EXPECT_EQ(f.blocks, 1U);
  EXPECT_EQ(store().faults().first_and_last().second.address, places[0]) << "status shows it, too";
}

// Nothing that is live escapes: a bit of each block of the device in turn.
TEST_F(WalkTest, FindsAFlippedBitInEveryLiveBlock) {
  const std::uint64_t last = world.device.geometry().blocks() - 1;
  std::set<std::uint64_t> noticed;
  std::vector<std::byte> zeros(kBlockSize);
  for (std::uint64_t at = store().super().first_segment.v; at < last; ++at) {
    if (test::block_at(world.device, BlockAddr{at}) == zeros) continue;
    test::flip_bit(world.device, BlockAddr{at}, at * 37 % (8 * kBlockSize));
    const auto addresses = scrubbed(store()).addresses();
    if (!addresses.empty()) {
      EXPECT_EQ(addresses, std::set<std::uint64_t>{at});
      noticed.insert(at);
    }
    test::flip_bit(world.device, BlockAddr{at}, at * 37 % (8 * kBlockSize));
    if (::testing::Test::HasFailure()) break;
  }
  EXPECT_EQ(noticed.size(), store().trees().own_view().live_blocks - 1);
}

TEST_F(WalkTest, SuperblocksAndTheirImage) {
  std::vector<BlockAddr> places = test::superblock_places(world.device);
  places.insert(places.end(), {BlockAddr{0}, BlockAddr{world.device.geometry().blocks() - 1}});  // the anchors
  places.push_back(store().superblocks().written().image.address);
  for (const BlockAddr at : places) {
    test::flip_bit(world.device, at, 20000);
    std::vector<Finding> findings;
    verify_superblocks(store(), [&](const Finding& f) { findings.push_back(f); });
    ASSERT_EQ(findings.size(), 1U) << at.v;
    EXPECT_EQ(findings[0].address, at);
    test::flip_bit(world.device, at, 20000);
  }
  std::vector<Finding> findings;
  verify_superblocks(store(), [&](const Finding& f) { findings.push_back(f); });
  EXPECT_TRUE(findings.empty());
}

// A copy that is whole, but was not written the last time.
TEST_F(WalkTest, ALostSuperblockWriteIsNoticed) {
  ASSERT_TRUE(world.fixture.make("/new", 0100644).ok());
  const auto device = world.device.snapshot();
  checkpoint();
  const BlockAddr second = test::superblock_places(world.device)[1];
  world.device.poke(second.v * kBlockSize, test::block_at(*device, second));
  std::vector<Finding> findings;
  verify_superblocks(store(), [&](const Finding& f) { findings.push_back(f); });
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_NE(findings[0].error.find("older"), std::string::npos) << findings[0].error;
}

TEST_F(WalkTest, ADamagedNodeCostsOnlyWhatHangsOnIt) {
  fill(12, 60);
  ASSERT_GT(store().trees().own_view().inode_file.level, 0);
  const tree::NodePtr root = *tree::get_root(*std::make_unique<tree::BlockingSource>(store().trees().cache(), store().device()),
                                             store().trees().own_view().inode_file);
  ASSERT_GE(root->children().size(), 3U);
  test::flip_bit(world.device, root->children()[1].ref.address, 9999);
  const Found found = scrubbed(store());
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].kind, Finding::Kind::node);
  EXPECT_EQ(found.findings[0].address, root->children()[1].ref.address);
  EXPECT_EQ(found.findings[0].first, root->children()[1].first);
  EXPECT_EQ(found.findings[0].bound, root->children()[2].first);
  const auto places = test::find_block(world.device, test::pattern_bytes(59, 0, kBlockSize));
  test::flip_bit(world.device, places.at(0), 1);
  EXPECT_EQ(scrubbed(store()).addresses().count(places[0].v), 1U) << "what comes after it is read";
}

TEST_F(WalkTest, GoesOnWhereItStopped) {
  fill(12, 60);
  std::uint64_t blocks = 0;
  Position at;
  int steps = 0;
  for (bool done = false; !done; ++steps) {
    Walk walk(store(), at, [](const Finding& f) { ADD_FAILURE() << to_text(f); });
    const Walk::Step step = walk.step();
    EXPECT_GE(step.blocks, done ? 0U : 1U);
    done = step.done;
    at = walk.position();
    blocks += step.blocks;
  }
  EXPECT_GT(steps, 5);
  // Each new beginning reads the way to its leaf again.
  const std::uint64_t live = store().trees().own_view().live_blocks;
  EXPECT_GE(blocks, live - 1);
  EXPECT_LE(blocks, live + static_cast<std::uint64_t>(steps) * 4);
}

TEST_F(WalkTest, WhatHasBeenPassedIsNotReadAgain) {
  const auto places = test::find_block(world.device, test::pattern_bytes(10, 0, kBlockSize));
  test::flip_bit(world.device, places.at(0), 4711);
  const Position before{format::TreeId::inode_file, {file(10), format::ItemKind::extent, 0}};
  const Position after{format::TreeId::inode_file, {file(10), format::ItemKind::extent, 1}};
  EXPECT_EQ(scrubbed(store(), before).findings.size(), 1U);
  EXPECT_EQ(scrubbed(store(), after).findings.size(), 0U);
  EXPECT_EQ(scrubbed(store(), {format::TreeId::reverse_map, format::kMinKey}).findings.size(), 0U);
}

// The checkpoint still names the rotten block, but no reader will ever see it.
TEST_F(WalkTest, WhatHasBeenOverwrittenSinceIsNoDamage) {
  const auto places = test::find_block(world.device, test::pattern_bytes(10, 0, kBlockSize));
  test::flip_bit(world.device, places.at(0), 4711);
  EXPECT_EQ(scrubbed(store()).findings.size(), 1U);
  ASSERT_TRUE(world.fixture.write(file(10), 0, test::pattern_bytes(99, 0, kBlockSize)).ok());
  EXPECT_TRUE(scrubbed(store()).findings.empty());
}

TEST_F(WalkTest, UnreadableBlocksAreNamedOneByOne) {
  const auto places = test::find_block(world.device, test::pattern_bytes(11, 8192, kBlockSize));
  ASSERT_EQ(places.size(), 1U);
  ASSERT_TRUE(world.fixture.unmount().ok());
  test::FaultDevice faults(world.device);
  FsFixture fixture(faults, world.fixture.options());
  ASSERT_TRUE(fixture.mount().ok());
  faults.add({.kind = io::IoKind::read, .times = test::Fault::kForEver, .touches_block = places[0].v});
  const Found found = scrubbed(fixture.store());
  ASSERT_EQ(found.findings.size(), 1U);
  EXPECT_EQ(found.findings[0].address, places[0]);
  EXPECT_EQ(found.findings[0].blocks, 1U);
  EXPECT_EQ(found.unreadable, 1U);
  EXPECT_EQ(fixture.store().faults().counts().unreadable, 1U);
  EXPECT_EQ(fixture.store().faults().counts().damaged, 0U);
}

// A walk in steps while everything it reads is overwritten, freed, cleaned and used again: no false alarm.
TEST(WalkOfALivingFilesystem, IsNotConfused) {
  test::ScriptProfile profile;
  test::crowd(profile);
  profile.steps = 1500;
  profile.checkpoint_weight = 8;
  std::uint64_t walks = 0, checkpoints = 0, cleaned = 0;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    World world({.bytes = 9u << 20, .image = {}, .lockstep = {}, .options = [](fs::Options& o) { o.discard = true; }});
    ASSERT_TRUE(test::good(world.start()));
    store::Store& store = world.fixture.store();
    const auto report = [&](const Finding& f) { ADD_FAILURE() << "seed " << seed << ": " << to_text(f); };
    auto walk = std::make_unique<Walk>(store, Position{}, report);
    const test::Script script = test::random_script(seed, profile);
    for (std::size_t at = 0; at < script.size(); at += 3) {
      const test::Script part(script.begin() + static_cast<std::ptrdiff_t>(at),
                              script.begin() + static_cast<std::ptrdiff_t>(std::min(at + 3, script.size())));
      ASSERT_TRUE(test::good(test::run_script(world.steps, part)));
      if (walk->step().done) {
        walk = std::make_unique<Walk>(store, Position{}, report);
        ++walks;
      }
    }
    checkpoints += store.counters().checkpoints;
    cleaned += store.counters().segments_cleaned;
    walk.reset();
    ASSERT_TRUE(test::good(world.finish()));
  }
  EXPECT_GT(walks, 10U);
  EXPECT_GT(checkpoints, 100U);
  EXPECT_GT(cleaned, 0U);
}

}  // namespace
}  // namespace varve::scrub
