#include "changes/unsealed.h"

#include <gtest/gtest.h>

#include "format/chunk.h"

namespace varve::changes {
namespace {

TEST(Unsealed, LetsNoMoreRecordsInThanOneChunkHolds) {
  Gate gate;
  Unsealed unsealed(format::kMaxChunkRecordBytes);
  const Gate::Pass pass(gate);
  EXPECT_TRUE(unsealed.reserve_records(format::kMaxChunkRecordBytes - 100));
  EXPECT_FALSE(unsealed.reserve_records(101));
  EXPECT_EQ(unsealed.reserved_records(), format::kMaxChunkRecordBytes - 100);
  EXPECT_TRUE(unsealed.reserve_records(100));
  unsealed.give_back_records(100);
  EXPECT_TRUE(unsealed.reserve_records(100));
}

TEST(Unsealed, IsAsOldAsTheOldestOfIt) {
  Gate gate;
  Unsealed unsealed(format::kMaxChunkRecordBytes);
  InodeDelta first(Ino{5}), second(Ino{6});
  const Gate::Closure closed(gate);
  EXPECT_FALSE(unsealed.any());
  unsealed.add(first, 0);  // a clock may stand at 0, which means that there is nothing
  unsealed.add(second, 700);
  EXPECT_EQ(unsealed.since_ns(), 1U);
  EXPECT_EQ(unsealed.deltas().size(), 2U);
  unsealed.clear();
  EXPECT_FALSE(unsealed.any());
  EXPECT_EQ(unsealed.reserved_records(), 0U);
}

struct Staged {
  PendingPtr data;
};

TEST(Unsealed, WhatIsDroppedCostsNothing) {
  constexpr std::size_t kBlocks = 5000;
  Gate gate;
  Unsealed unsealed(format::kMaxChunkRecordBytes);
  InodeDelta delta(Ino{5});
  const Gate::Closure closed(gate);
  boost::intrusive_ptr<log::OwnPayloadBuffer> buffer(new log::OwnPayloadBuffer(1));
  for (std::size_t i = 0; i < kBlocks; ++i) {
    PendingPtr block(new PendingBlock(buffer, buffer->block(0)));
    block->owner = &delta;
    block->block = i % 2 ? Unsealed::kYoungBlocks : 0;
    PendingBlock& added = *block;
    unsealed.add_payload(std::vector<Staged>{{std::move(block)}});
    EXPECT_EQ(unsealed.payload_bytes(), kBlockSize);
    EXPECT_EQ(unsealed.held_bytes(), kBlockSize);
    EXPECT_EQ(unsealed.stream_bytes(), i % 2 ? kBlockSize : 0);
    unsealed.drop_payload(added);
    EXPECT_EQ(unsealed.payload_bytes(), 0U);
  }
  EXPECT_EQ(unsealed.stream_bytes(), 0U);
  EXPECT_EQ(unsealed.held_bytes(), 0U);
  EXPECT_EQ(buffer->use_count(), 1U);
  EXPECT_LT(unsealed.payload().size(), kBlocks / 2);
}

// Or a few blocks of many buffers would keep far more memory than anybody counts.
TEST(Unsealed, ABufferIsHeldUntilNothingOfItIsWanted) {
  Gate gate;
  Unsealed unsealed(format::kMaxChunkRecordBytes);
  InodeDelta delta(Ino{5});
  const Gate::Closure closed(gate);
  boost::intrusive_ptr<log::OwnPayloadBuffer> buffer(new log::OwnPayloadBuffer(3));
  std::vector<Staged> staged;
  std::vector<PendingBlock*> blocks;
  for (std::size_t i = 0; i < 3; ++i) {
    PendingPtr block(new PendingBlock(buffer, buffer->block(i)));
    block->owner = &delta;
    block->block = Unsealed::kYoungBlocks - 1 + i;
    blocks.push_back(block.get());
    staged.push_back({std::move(block)});
  }
  unsealed.add_payload(std::move(staged));
  EXPECT_EQ(unsealed.held_bytes(), 4 * kBlockSize);
  EXPECT_EQ(unsealed.stream_bytes(), 2 * kBlockSize);
  unsealed.drop_payload(*blocks[2]);
  unsealed.drop_payload(*blocks[0]);
  EXPECT_EQ(unsealed.payload_bytes(), kBlockSize);
  EXPECT_EQ(unsealed.held_bytes(), 4 * kBlockSize);
  EXPECT_EQ(unsealed.stream_bytes(), 2 * kBlockSize);
  unsealed.drop_payload(*blocks[1]);
  EXPECT_EQ(unsealed.held_bytes() + unsealed.stream_bytes() + unsealed.payload_bytes(), 0U);
}

TEST(Unsealed, InodesThatCameAndWentAreForgotten) {
  Gate gate;
  Unsealed unsealed(format::kMaxChunkRecordBytes);
  InodeDelta stays(Ino{5}), gone(Ino{6});
  gone.created = gone.freed = true;
  const Gate::Closure closed(gate);
  for (InodeDelta* delta : {&stays, &gone}) {
    delta->unsealed.listed = true;
    unsealed.add(*delta, 3);
  }
  unsealed.forget_vanished();
  ASSERT_EQ(unsealed.deltas().size(), 1U);
  EXPECT_EQ(unsealed.deltas()[0], &stays);
  EXPECT_EQ(unsealed.since_ns(), 3U);
}

}  // namespace
}  // namespace varve::changes
