// Where chunks stand, with gaps between them or none.
#include "log/chain.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace varve::log {
namespace {

constexpr std::uint32_t kSegmentBlocks = 64;

class ChainTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const Gate::Closure closed(gate);
    table.finish_loading();
    const SegmentId first = *table.take(format::kGroupChain);
    chain.start({.rest = {table.geometry().start_of(first), kSegmentBlocks}, .next_run = {}, .lsn = Lsn{5}, .crc = 1});
  }

  // Every block at most once, and what the header says is where the next one stands.
  ChunkPlace write(std::uint32_t blocks, std::uint32_t gap) { return write(blocks, {gap, gap > 0}); }
  ChunkPlace write_unawaited(std::uint32_t blocks) { return write(blocks, {0, true}); }
  ChunkPlace write(std::uint32_t blocks, const device::TurnGap::Choice& gap) {
    const Gate::Closure closed(gate);
    const format::Run rest = chain.position().rest, next = chain.position().next_run;
    auto place = chain.place(1, blocks - 1, gap);
    EXPECT_TRUE(place.ok());
    EXPECT_TRUE(place->address == rest.start || place->address == next.start);
    for (std::uint32_t i = 0; i < blocks; ++i) EXPECT_TRUE(written.insert(place->address.v + i).second) << "written twice";
    EXPECT_EQ(table.info(table.geometry().segment_of(place->address)).state, segments::SegmentState::open);
    chain.take(*place, 0);
    format::ChunkHeader header;
    header.header_blocks = place->header_blocks;
    header.payload_blocks = place->payload_blocks;
    header.address = place->address;
    header.run = place->run;
    header.elsewhere = place->elsewhere;
    EXPECT_EQ(header.rest().blocks, chain.position().rest.blocks);
    if (header.rest().blocks) {
      EXPECT_EQ(header.rest().start, chain.position().rest.start);
    }
    return *place;
  }
  format::Run rest() {
    const Gate::Closure closed(gate);
    return chain.position().rest;
  }
  bool leaves() {
    const Gate::Closure closed(gate);
    return *chain.prepare_to_leave();
  }
  SegmentId segment_of(const ChunkPlace& place) { return table.geometry().segment_of(place.address); }

  Gate gate;
  segments::SegmentTable table{{BlockAddr{256}, kSegmentBlocks, 64}};
  segments::Heads heads{table};
  Chain chain{table, heads};
  std::set<std::uint64_t> written;
};

TEST_F(ChainTest, WithoutGapsChunksStandInARow) {
  BlockAddr end = write(3, 0).address + 3;
  for (int i = 0; i < 20; ++i) {
    const ChunkPlace place = write(3, 0);
    EXPECT_EQ(place.address, end);
    EXPECT_EQ(place.elsewhere.blocks, 0U);
    EXPECT_EQ(place.before, 0U);
    end = place.address + 3;
  }
  EXPECT_EQ(segment_of(write(3, 0)), SegmentId{1}) << "one block is left in the first one";
  EXPECT_EQ(table.info(SegmentId{0}).state, segments::SegmentState::used);
}

TEST_F(ChainTest, GapsAreFilledOnTheWayRound) {
  std::set<std::uint64_t> segments;
  unsigned chunks = 0, further = 0;
  for (; segments.size() < 3; ++chunks) {
    const ChunkPlace place = write(2, 10);
    segments.insert(segment_of(place).v);
    if (place.before > 0U) {  // not behind the first chunk of a segment
      EXPECT_GE(*place.before, 10U);
      ++further;
    }
  }
  EXPECT_GE(chunks, 2 * kSegmentBlocks / 2 - 6) << "hardly anything is left of the two that are full";
  EXPECT_GE(further, chunks * 2 / 3);
}

TEST_F(ChainTest, WhatFitsInNoGapGoesOnInTheNextSegment) {
  for (int i = 0; i < 7; ++i) write(2, 10);
  ASSERT_LT(rest().blocks, 20U);
  EXPECT_EQ(segment_of(write(20, 0)), SegmentId{1});
  EXPECT_GE(chain.blocks_given_up(), 40U);
  EXPECT_EQ(table.info(SegmentId{0}).state, segments::SegmentState::used);
  EXPECT_EQ(segment_of(write(2, 0)), SegmentId{1}) << "gaps of a segment that has been left are forgotten";
}

TEST_F(ChainTest, TheNextSegmentIsNamedBeforehand) {
  BlockAddr named = write(2, 20).next_run.start;
  for (int i = 0; i < 200; ++i) {
    const ChunkPlace place = write(2, 20);
    if (table.geometry().segment_of(place.address) == table.geometry().segment_of(named)) {
      named = place.next_run.start;
    } else {
      EXPECT_EQ(place.next_run.start, named);
    }
    ASSERT_NE(named, BlockAddr{});
  }
}

// Were the only chunk damaged that says where the log goes on, nobody would look there.
TEST_F(ChainTest, TheFirstChunkOfASegmentLeavesNoGap) {
  for (SegmentId segment{0}; segment < SegmentId{4}; ++segment) {
    EXPECT_EQ(segment_of(write(2, 48)), segment);
    EXPECT_EQ(segment_of(write(20, 48)), segment);
    write(kSegmentBlocks - 22, 0);
  }
}

TEST_F(ChainTest, NoGapsAreWantedWhereSegmentsAreShort) {
  EXPECT_TRUE(chain.has_room_for_gaps());
  while (table.clean() * 16 > table.geometry().count) table.take(0);
  EXPECT_FALSE(chain.has_room_for_gaps());
}

// A stick that is called a disk: what was tried in vain is not worth going back for.
TEST_F(ChainTest, GapsThatGainNothingStay) {
  BlockAddr last;
  for (int i = 0; i < 3; ++i) last = write(2, 10).address;
  for (SegmentId segment{0}; segment == SegmentId{0};) {
    const ChunkPlace place = write(2, 0);
    segment = segment_of(place);
    EXPECT_GT(place.address, last);
    last = place.address;
  }
}

TEST_F(ChainTest, RandomChunksStandWhereTheHeaderSays) {
  std::mt19937 random(7);
  const auto below = [&](unsigned most) { return static_cast<std::uint32_t>(random() % most); };
  while (table.clean() > 2) {
    const std::uint32_t gaps[] = {0, 2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128};
    write(1 + (below(4) ? below(3) : below(32)), gaps[below(12)]);
  }
}

// Neither a short rest behind a chunk that nobody waits for, nor one too many of them, ends the way round.
TEST_F(ChainTest, AShortRestIsLeftForLater) {
  for (int i = 0; i < 6; ++i) write(2, 10);
  const SegmentId segment = segment_of(write(2, 10));
  for (int i = 0; i < 20; ++i) write_unawaited(1 + i % 3);
  EXPECT_LT(chain.blocks_given_up(), 8U) << segment.v;
}

TEST_F(ChainTest, ItLeavesWhatIsBeyondALimit) {
  EXPECT_FALSE(leaves());
  const BlockAddr beyond = table.geometry().start_of(SegmentId{50});
  {
    const Gate::Closure closed(gate);
    for (const std::uint64_t id : {50, 51}) table.set_open(SegmentId{id}, format::kGroupChain);
    table.finish_loading();
    chain.start({.rest = {beyond, kSegmentBlocks}, .next_run = {beyond + kSegmentBlocks, kSegmentBlocks}, .lsn = Lsn{5}, .crc = 1});
  }
  for (int i = 0; i < 4; ++i) write(2, 10);
  table.end().set_limit(40);
  EXPECT_TRUE(leaves());
  const ChunkPlace last = write(1, 0);
  EXPECT_EQ(last.run.blocks, 1U);
  EXPECT_EQ(rest().blocks, 0U);
  EXPECT_FALSE(leaves());
  EXPECT_LT(segment_of(write(2, 10)).v, 40U);
  for (const std::uint64_t id : {50, 51}) EXPECT_NE(table.info(SegmentId{id}).state, segments::SegmentState::open);
}

}  // namespace
}  // namespace varve::log
