// Single checkpoints over parts on a device that remembers all writes: what they leave there, at whatever moment the power goes.
#include <gtest/gtest.h>

#include <cstring>
#include <optional>

#include "base/crc32c.h"
#include "base/wait_list.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "checkpoint/readers.h"
#include "checkpoint/sealer.h"
#include "checkpoint/superblock_keeper.h"
#include "checkpoint/superblocks.h"
#include "log/recovery.h"
#include "space/discards.h"
#include "space/hole_feeder.h"
#include "store/store_parts.h"
#include "support/crash_device.h"
#include "support/fault_device.h"

namespace varve::checkpoint {
namespace {

constexpr std::uint64_t kAllBlocks = format::kMaxFileBlocks;
constexpr std::size_t kRecordBytes = 256;  // what each operation of these cases writes, at most

// What a checkpoint works with beside the parts of a store.
struct CheckpointedParts : test::StoreParts {
  CheckpointedParts(io::BlockDevice& device, const format::Superblock& found) : StoreParts(device, found), superblocks(io.device(), found) {
    start();
  }

  SuperblockKeeper superblocks;
  WaitList waiters;
  space::Discards discards{io, segments, waiters, false};
  space::HoleFeeder hole_feeder{space::HoleFeeder::Parts{gate, segments, log, trees, charge, space, faults}};
  Sealer sealer{Sealer::Parts{segments, log, log_clock, staging, space, hole_feeder, faults}};
  Readers readers{Readers::Parts{gate, clock, snapshots, charge}};
  Protection protection{Protection::Parts{gate, clock, changes, trees, snapshots, charge, space, readers}};
  Checkpoints checkpoints{CheckpointParts{gate,    clock,   memory_bytes, io,     faults, counters, segments,    log_clock,
                                          log,     superblocks, trees,    snapshots, changes, inodes, staging, charge,
                                          space,   hole_feeder, discards, waiters, sealer, readers, protection}};
};

format::Superblock best_of(io::BlockDevice& device) {
  auto found = read_superblocks(device);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message());
  return found.ok() ? found->best : format::Superblock{};
}

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    format::Superblock super = made_.super;
    super.epoch = test::StoreParts::kEpoch;
    super.clean = false;
    format::EmptyFilesystem mounted = made_;
    mounted.super = super;
    test::write_filesystem(journal_, mounted);
    parts_.emplace(device_, best_of(journal_));
  }

  changes::InodePtr create() {
    const Gate::Pass pass(parts_->gate);
    EXPECT_TRUE(parts_->staging.unsealed().reserve_records(kRecordBytes));
    changes::InodePtr inode = parts_->staging.create_inode();
    const WriteLock lock(inode->mutex);
    inode->attributes.mode = 0100644;
    inode->attributes.nlink = 1;
    parts_->staging.set_attributes(*inode);
    return inode;
  }
  void write(changes::Inode& inode, std::uint64_t first, std::uint64_t count) {
    const Gate::Pass pass(parts_->gate);
    EXPECT_TRUE(parts_->staging.unsealed().reserve_records(kRecordBytes));
    std::vector<changes::StageBlock> staged;
    for (std::uint64_t i = 0; i < count; ++i) {
      boost::intrusive_ptr<log::OwnPayloadBuffer> buffer(new log::OwnPayloadBuffer(1));
      std::memset(buffer->block(0), static_cast<int>(first + i + 1), kBlockSize);
      changes::StageBlock one;
      one.block = first + i;
      one.data = changes::PendingPtr(new changes::PendingBlock(buffer, buffer->block(0)));
      one.data->crc = crc32c({buffer->block(0), kBlockSize});
      staged.push_back(std::move(one));
    }
    const WriteLock lock(inode.mutex);
    parts_->staging.put_blocks(inode, staged, 1);
  }
  // As fsync does.
  void seal_and_flush() {
    {
      const Gate::Closure closed(parts_->gate);
      ASSERT_TRUE(parts_->sealer.run(true, nullptr).ok());
    }
    ASSERT_TRUE(parts_->make_log_durable().ok());
  }

  const format::EmptyFilesystem made_ = test::made_filesystem();
  test::CrashDevice journal_{test::kPartDeviceBytes};
  test::FaultDevice device_{journal_};
  std::optional<CheckpointedParts> parts_;
};

// How many blocks of the file the trees on the device have.
std::uint64_t blocks_in_trees(io::BlockDevice& device, Ino ino) {
  const format::Superblock super = best_of(device);
  tree::Trees trees(device, super, {super.first_segment, super.segment_blocks, super.segments}, 4u << 20);
  tree::BlockingSource source = trees.source();
  const auto found = tree::count_blocks(source, trees.own_view().inode_file, ino, 0, kAllBlocks);
  EXPECT_TRUE(found.ok()) << (found.ok() ? "" : found.error().message());
  return found.ok() ? *found : 0;
}

// And how many the log behind them adds, of one that only grows.
std::uint64_t blocks_in_log(io::BlockDevice& device, Ino ino) {
  std::uint64_t blocks = 0;
  const auto recovered = log::recover_chain(device, best_of(device), [&](const format::Chunk& chunk) {
    return format::decode_records(chunk.records, [&](const format::Record& record) -> Status {
      const auto* map = std::get_if<format::MapBlocks>(&record);
      if (map && map->ino == ino) blocks += map->crcs.size();
      return {};
    });
  });
  EXPECT_TRUE(recovered.ok()) << (recovered.ok() ? "" : recovered.error().message());
  return blocks;
}

// The free map and the superblock say the same.
void expect_maps_fit(io::BlockDevice& device) {
  const format::Superblock super = best_of(device);
  test::StoreParts mounted(device, super);
  mounted.start();
  std::uint64_t live = 0;
  mounted.segments.for_each([&](SegmentId, const segments::SegmentInfo& info) { live += info.live(); });
  EXPECT_EQ(live, super.live_blocks);
}

// --- what it leaves -----------------------------------------------------------------------------------------------------

TEST_F(CheckpointTest, WhatWasStagedIsInTheTreesThen) {
  const changes::InodePtr file = create();
  write(*file, 0, 40);
  ASSERT_TRUE(parts_->checkpoints.make({}).ok());
  EXPECT_EQ(blocks_in_trees(journal_, file->ino), 40U);
  EXPECT_EQ(blocks_in_log(journal_, file->ino), 0U);
  const format::Superblock super = best_of(journal_);
  EXPECT_EQ(super.serial, made_.super.serial + 1);
  EXPECT_EQ(super.inodes, made_.super.inodes + 1);
  EXPECT_EQ(super.data_blocks, made_.super.data_blocks + 40);
  EXPECT_EQ(super.next_ino, file->ino.v + 1);
  EXPECT_FALSE(super.clean);
  expect_maps_fit(journal_);
}

TEST_F(CheckpointTest, NothingIsLeftOfTheDelta) {
  const changes::InodePtr file = create();
  write(*file, 0, 3);
  EXPECT_TRUE(parts_->staging.dirty());
  ASSERT_TRUE(parts_->checkpoints.make({}).ok());
  EXPECT_FALSE(parts_->staging.dirty());
  const WriteLock lock(file->mutex);
  EXPECT_EQ(file->active, nullptr);
  EXPECT_EQ(file->frozen, nullptr);
  EXPECT_EQ(file->attributes.blocks, 3U);
}

TEST_F(CheckpointTest, WhatComesLaterStaysInTheLog) {
  const changes::InodePtr file = create();
  write(*file, 0, 3);
  ASSERT_TRUE(parts_->checkpoints.make({}).ok());
  write(*file, 3, 4);
  seal_and_flush();
  EXPECT_EQ(blocks_in_trees(journal_, file->ino), 3U);
  EXPECT_EQ(blocks_in_log(journal_, file->ino), 4U);
}

TEST_F(CheckpointTest, TheLastOneIsClean) {
  write(*create(), 0, 1);
  CheckpointRequest last;
  last.clean = true;
  ASSERT_TRUE(parts_->checkpoints.make(last).ok());
  EXPECT_TRUE(best_of(journal_).clean);
}

TEST_F(CheckpointTest, NumbersAndCountsGoOn) {
  const std::uint64_t before = parts_->checkpoints.settled().v;
  EXPECT_EQ(parts_->checkpoints.next().v, before + 1);
  for (int i = 0; i < 3; ++i) {
    write(*create(), 0, 1);
    ASSERT_TRUE(parts_->checkpoints.make({}).ok());
  }
  EXPECT_EQ(parts_->checkpoints.settled().v, before + 3);
  EXPECT_EQ(parts_->counters.checkpoints.load(), 3U);
  EXPECT_EQ(best_of(journal_).lifetime.checkpoints, made_.super.lifetime.checkpoints + 3);
}

TEST_F(CheckpointTest, ASegmentThatItIsToEvacuateHasNoNodesLeft) {
  const changes::InodePtr file = create();
  for (std::uint64_t i = 0; i < 300; ++i) {
    write(*file, 2 * i, 1);
    if (i % 50 == 49) seal_and_flush();
  }
  ASSERT_TRUE(parts_->checkpoints.make({}).ok());
  const auto& geometry = parts_->segments.geometry();
  const SegmentId old = geometry.segment_of(parts_->trees.own_view().inode_file.ref.address);
  ASSERT_GT(parts_->segments.info(old).live(), 0U);
  const format::Run& head = parts_->checkpoints.node_head();
  if (head.blocks && geometry.segment_of(head.start) == old) {  // only what is closed is emptied
    parts_->segments.close(old, parts_->log_clock.now());
    parts_->checkpoints.set_node_head({});
  }
  CheckpointRequest request;
  request.evacuate = {old};
  ASSERT_TRUE(parts_->checkpoints.make(request).ok());
  EXPECT_FALSE(parts_->checkpoints.evacuation_was_cut());
  EXPECT_NE(geometry.segment_of(parts_->trees.own_view().inode_file.ref.address), old);
  EXPECT_EQ(parts_->segments.info(old).live(), 0U);
  EXPECT_EQ(blocks_in_trees(journal_, file->ino), 300U);
  expect_maps_fit(journal_);
}

// --- when it ends halfway -----------------------------------------------------------------------------------------------

TEST_F(CheckpointTest, NothingIsLostWhereverThePowerGoes) {
  const changes::InodePtr file = create();
  write(*file, 0, 20);
  seal_and_flush();
  const std::size_t before = journal_.position();
  ASSERT_TRUE(parts_->checkpoints.make({}).ok());
  write(*file, 20, 20);
  seal_and_flush();
  const std::size_t second = journal_.position();
  ASSERT_TRUE(parts_->checkpoints.make({}).ok());
  std::size_t old_ones = 0, new_ones = 0;
  for (const test::Cut& cut : journal_.cuts({.first = before, .max_positions = 60, .seeds = 1})) {
    SCOPED_TRACE(to_string(cut));
    const auto image = journal_.image(cut);
    const std::uint64_t least = cut.position >= second ? 40 : 20;
    const std::uint64_t merged = blocks_in_trees(*image, file->ino);
    EXPECT_GE(merged + blocks_in_log(*image, file->ino), least);
    expect_maps_fit(*image);
    ++(merged ? new_ones : old_ones);
  }
  EXPECT_GT(old_ones, 0U);
  EXPECT_GT(new_ones, 0U);
}

TEST_F(CheckpointTest, WhereAWriteFailsTheOldOneStands) {
  const changes::InodePtr file = create();
  write(*file, 0, 20);
  seal_and_flush();
  device_.add({.action = test::Fault::Action::fail, .kind = io::IoKind::write});
  EXPECT_FALSE(parts_->checkpoints.make({}).ok());
  EXPECT_TRUE(parts_->faults.read_only());
  EXPECT_EQ(best_of(journal_).serial, made_.super.serial);
  EXPECT_EQ(parts_->checkpoints.settled(), made_.super.serial);
  EXPECT_EQ(blocks_in_log(journal_, file->ino), 20U);
  EXPECT_FALSE(parts_->checkpoints.make({}).ok());  // nothing is tried again
  EXPECT_EQ(best_of(journal_).serial, made_.super.serial);
}

TEST_F(CheckpointTest, WhereAFlushFailsNoSuperblockIsWritten) {
  const changes::InodePtr file = create();
  write(*file, 0, 20);
  device_.add({.action = test::Fault::Action::fail, .kind = io::IoKind::flush});
  EXPECT_FALSE(parts_->checkpoints.make({}).ok());
  EXPECT_TRUE(parts_->faults.read_only());
  EXPECT_EQ(best_of(journal_).serial, made_.super.serial);
}

}  // namespace
}  // namespace varve::checkpoint
