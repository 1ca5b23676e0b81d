// What cleaning has emptied and no checkpoint has freed yet counts for users (Store::note_emptied), and only until then.
#include <gtest/gtest.h>

#include "device/faults.h"
#include "fs/engine.h"
#include "segments/segment_table.h"
#include "space/space.h"
#include "store/store.h"
#include "support/good.h"
#include "support/world.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

constexpr std::uint32_t kSegmentBlocks = 64;

// A filesystem without a cleaner, written over until users' share of clean segments is used up.
class Lending : public ::testing::Test {
 protected:
  void SetUp() override {
    WorldParameters parameters;
    parameters.bytes = 256u << 20;
    parameters.image.segment_blocks = kSegmentBlocks;
    parameters.options = [](fs::Options& options) { options.cleaner = false; };
    world_ = std::make_unique<World>(parameters);
    ASSERT_TRUE(good(world_->start()));
    const auto made = world_->fixture.make("/file", 0100644);
    ASSERT_TRUE(made.ok());
    file_ = made->ino;
    const auto available = world_->fixture.available_bytes();
    ASSERT_TRUE(available.ok());
    blocks_ = *available / kBlockSize * 3 / 4;
    const std::vector<std::byte> part(std::size_t{64} * kBlockSize, std::byte{1});
    for (std::uint64_t at = 0; at + 64 <= blocks_; at += 64)
      ASSERT_TRUE(world_->fixture.write(file_, at * kBlockSize, part).ok()) << at;
    while (overwrite()) {
    }
  }

  // One block, never one next to another; false: there is no room.
  bool overwrite() {
    next_ = (next_ + 1613) % (blocks_ / 64 * 64);
    return world_->fixture.write(file_, next_ * kBlockSize, block_).ok();
  }
  store::Store& store() { return world_->fixture.store(); }

  std::unique_ptr<World> world_;
  Ino file_;
  std::uint64_t blocks_ = 0, next_ = 0;
  const std::vector<std::byte> block_ = std::vector<std::byte>(kBlockSize, std::byte{2});
};

TEST_F(Lending, WhatIsEmptiedLetsUsersGoOnUntilTheCheckpoint) {
  ASSERT_FALSE(overwrite());
  constexpr std::uint64_t kEmptied = 20;
  const std::uint64_t clean = store().segments().clean();
  ASSERT_GT(clean, kEmptied);
  for (std::uint64_t i = 0; i < kEmptied; ++i) store().space().note_emptied();
  const Serial before = store().trees().own_view().serial;
  std::uint64_t written = 0;
  while (overwrite() && store().trees().own_view().serial == before)
    ASSERT_LE(++written, kEmptied * kSegmentBlocks + 256);  // a megabyte may wait for its seal
  EXPECT_GT(written, kSegmentBlocks);
  EXPECT_NE(store().trees().own_view().serial, before);  // then a checkpoint was waited for
  EXPECT_FALSE(store().faults().read_only());
  EXPECT_TRUE(good(foresight(world_->fixture)));
}

}  // namespace
}  // namespace varve::test
