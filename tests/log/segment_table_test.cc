// Which segments may be written again.
#include "segments/segment_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace varve::segments {
namespace {

class SegmentTableTest : public ::testing::Test {
 protected:
  void SetUp() override { table.finish_loading(); }

  SegmentId take() { return *table.take(0); }
  BlockAddr block_of(SegmentId id, std::uint32_t index = 0) { return table.geometry().start_of(id) + index; }
  // A checkpoint that finds `live` blocks in the segment.
  void checkpoint(SegmentId id, std::uint32_t live) {
    const std::uint64_t frozen = table.freeze();
    settle(frozen, id, live);
  }
  void settle(std::uint64_t frozen, SegmentId id, std::uint32_t live) {
    format::SegmentRecord record;
    record.live = live;
    table.merged(frozen, {{id, record}});
    freed = table.settle(frozen, false);
  }
  bool is_free(SegmentId id) { return std::ranges::find(freed, id) != freed.end(); }

  SegmentTable table{{BlockAddr{256}, 64, 16}};
  std::vector<SegmentId> freed;
};

// A last line: code that takes addresses from the device asks the geometry before.
TEST_F(SegmentTableTest, WhatIsOutsideTheSegmentsIsIgnored) {
  const BlockAddr end = table.geometry().start_of(SegmentId{16});
  for (const BlockAddr address : {BlockAddr{1}, BlockAddr{255}, end, BlockAddr{(1ULL << 48) - 1}}) {
    EXPECT_FALSE(table.geometry().contains(address));
    table.touch(address);
    table.add_live(address, 1, 1);
    table.sub_live(address, 1);
    const SegmentId id = table.geometry().segment_of(address);
    table.occupy(id);
    EXPECT_EQ(table.info(id).live(), 0U);
  }
  EXPECT_EQ(table.reclaimable(), 0U);
  EXPECT_EQ(table.clean(), 16U);
  EXPECT_TRUE(table.geometry().contains(end - 2, 2));
  EXPECT_FALSE(table.geometry().contains(end - 2, 3));
  EXPECT_FALSE(table.geometry().contains(BlockAddr{255}, 2));
}

TEST_F(SegmentTableTest, WhatACheckpointEmptiesIsCleanWhenItHasSettled) {
  const SegmentId id = take();
  table.touch(block_of(id));
  table.add_live(block_of(id), 3, 1);
  table.close(id, 1);
  checkpoint(id, 3);
  EXPECT_FALSE(is_free(id));
  table.sub_live(block_of(id), 3);
  EXPECT_EQ(table.info(id).state, SegmentState::used) << "the settled trees still need it";
  checkpoint(id, 0);
  EXPECT_TRUE(is_free(id));
  EXPECT_EQ(table.info(id).state, SegmentState::clean);
}

// Handed out after the freeze, perhaps for a chunk that a recovery from this checkpoint has to read.
TEST_F(SegmentTableTest, H28_WhatWasHandedOutSinceTheFreezeIsKept) {
  const SegmentId id = take();
  const std::uint64_t frozen = table.freeze();
  table.touch(block_of(id));
  table.close(id, 1);
  settle(frozen, id, 0);
  EXPECT_FALSE(is_free(id));
  checkpoint(id, 0);
  EXPECT_TRUE(is_free(id)) << "the next one no longer needs it";
}

// Handed out to the cleaner, in no map yet when the checkpoint freezes, named by a record after it.
TEST_F(SegmentTableTest, H29_WhatTheCleanerWritesIsKeptUntilItIsMapped) {
  const SegmentId id = take();
  table.touch(block_of(id));
  table.add_in_flight(block_of(id), 8);
  table.close(id, 1);
  checkpoint(id, 0);
  EXPECT_FALSE(is_free(id));
  EXPECT_EQ(table.reclaimable(), 0U);
  table.add_live(block_of(id), 8, 1);
  table.sub_in_flight(block_of(id), 8);
  checkpoint(id, 8);
  EXPECT_FALSE(is_free(id));
}

TEST_F(SegmentTableTest, H52_NothingIsHandedOutBehindTheEnd) {
  for (int i = 0; i < 8; ++i) take();
  table.end().set_limit(11);
  EXPECT_EQ(table.clean(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_LT(take().v, 11U);
  EXPECT_FALSE(table.take(0));
}

TEST_F(SegmentTableTest, H31_WhatIsBeingDiscardedIsNotHandedOut) {
  std::vector<SegmentId> all;
  for (int i = 0; i < 15; ++i) all.push_back(take());
  const SegmentId last = take();
  EXPECT_FALSE(table.take(0));
  table.close(last, 1);
  table.merged(table.freeze(), {});
  const auto discarding = table.settle(table.generation(), true);
  ASSERT_EQ(discarding, std::vector{last});
  EXPECT_FALSE(table.take(0));
  table.discarded(last);
  EXPECT_EQ(take(), last);
}

// --- holes: each of the rules by which the zero bits of the settled map may be written ---------------------------------

class HolesTest : public SegmentTableTest {
 protected:
  // A segment of which 10 blocks live and all has settled; returns the generation that settled.
  std::uint64_t settle_used(SegmentId id) {
    table.touch(block_of(id));
    table.add_live(block_of(id), 10, 1);
    table.close(id, 1);
    return settle_again(id, 10);
  }
  std::uint64_t settle_again(SegmentId id, std::uint32_t live) {
    const std::uint64_t frozen = table.freeze();
    settle(frozen, id, live);
    return frozen;
  }
};

TEST_F(HolesTest, OfASegmentThatHasSettledMayBeWritten) {
  const SegmentId id = take();
  const std::uint64_t settled = settle_used(id);
  ASSERT_TRUE(table.open_holes(id, settled));
  EXPECT_EQ(table.info(id).state, SegmentState::refilling);
  EXPECT_FALSE(table.open_holes(id, settled)) << "by one owner at a time";
  table.close(id, 5);
  EXPECT_EQ(table.info(id).state, SegmentState::used);
}

TEST_F(HolesTest, H28_NotWhileSomethingWasHandedOutSinceTheFreeze) {
  const SegmentId id = take();
  table.touch(block_of(id));
  table.add_live(block_of(id), 10, 1);
  table.close(id, 1);
  EXPECT_FALSE(table.open_holes(id, 0)) << "in no settled map yet";
  const std::uint64_t settled = settle_again(id, 10);
  ASSERT_TRUE(table.open_holes(id, settled));
  table.touch(block_of(id, 20));
  table.close(id, 1);
  EXPECT_FALSE(table.open_holes(id, settled)) << "block 20 is free in that map, but a chunk may name it";
  EXPECT_TRUE(table.open_holes(id, settle_again(id, 11)));
}

TEST_F(HolesTest, H28_NotInTheReplayRange) {
  format::SegmentRecord record;
  record.live = 10;
  table.load(SegmentId{3}, record);
  table.occupy(SegmentId{3});
  EXPECT_FALSE(table.open_holes(SegmentId{3}, 0));
  EXPECT_TRUE(table.open_holes(SegmentId{3}, settle_again(SegmentId{3}, 10)));
}

TEST_F(HolesTest, H29_NotWhileMovedBlocksAreInNoMap) {
  const SegmentId id = take();
  table.touch(block_of(id));
  table.add_live(block_of(id), 10, 1);
  table.add_in_flight(block_of(id, 10), 8);
  table.close(id, 1);
  const std::uint64_t settled = settle_again(id, 10);
  EXPECT_FALSE(table.open_holes(id, settled));
  table.add_live(block_of(id, 10), 8, 1);
  table.sub_in_flight(block_of(id, 10), 8);
  EXPECT_FALSE(table.open_holes(id, settled)) << "the record is younger than the map: the block is handed out again else";
  EXPECT_TRUE(table.open_holes(id, settle_again(id, 18)));
}

TEST_F(HolesTest, NotOfAHeadACleanOrADiscardedOne) {
  const SegmentId open = take(), clean{9};
  EXPECT_FALSE(table.open_holes(open, 100));
  EXPECT_FALSE(table.open_holes(clean, 100));
  ASSERT_TRUE(table.begin_discard(clean));
  EXPECT_FALSE(table.open_holes(clean, 100));
}

TEST_F(HolesTest, H37_NotAmongNodes) {
  const SegmentId id = *table.take(format::kGroupNodes);
  EXPECT_FALSE(table.open_holes(id, settle_used(id)));
}

TEST_F(HolesTest, NotOfAVictim) {
  const SegmentId id = take();
  const std::uint64_t settled = settle_used(id);
  table.set_being_cleaned(id, true);
  EXPECT_FALSE(table.open_holes(id, settled));
  EXPECT_TRUE(table.open_holes(id, settle_again(id, 10))) << "it could not be emptied";
}

// It is about to become clean as a whole, or there are none.
TEST_F(HolesTest, NotWhereNothingOrAllIsLive) {
  const SegmentId id = take();
  const std::uint64_t settled = settle_used(id);
  table.sub_live(block_of(id), 10);
  EXPECT_FALSE(table.open_holes(id, settled));
  table.add_live(block_of(id), 64, 1);
  EXPECT_FALSE(table.open_holes(id, settle_again(id, 64)));
}

TEST_F(HolesTest, OfAnOpenSegmentAreNeitherFreedNorDiscarded) {
  const SegmentId id = take();
  ASSERT_TRUE(table.open_holes(id, settle_used(id)));
  table.sub_live(block_of(id), 10);
  checkpoint(id, 0);
  EXPECT_FALSE(is_free(id)) << "somebody is about to write there";
  EXPECT_FALSE(table.begin_discard(id));
  table.touch(block_of(id, 20));
  table.close(id, 1);
  checkpoint(id, 0);
  EXPECT_TRUE(is_free(id));
}

TEST_F(HolesTest, H31_OfASegmentThatIsBeingDiscardedAreNotWritten) {
  const SegmentId id = take();
  const std::uint64_t settled = settle_used(id);
  ASSERT_TRUE(table.begin_discard(id, settled));
  ASSERT_TRUE(table.begin_discard(id, settled)) << "another hole of it";
  EXPECT_FALSE(table.open_holes(id, settled));
  EXPECT_FALSE(table.discarded(id)) << "it is no clean segment";
  EXPECT_FALSE(table.open_holes(id, settled));
  EXPECT_FALSE(table.discarded(id));
  EXPECT_TRUE(table.open_holes(id, settled));
}

TEST_F(HolesTest, H31_ASegmentThatBecomesFreeMeanwhileWaitsForTheDiscardsOfItsHoles) {
  for (const bool whole : {false, true}) {
    const SegmentId id = take();
    const std::uint64_t before = table.clean();
    ASSERT_TRUE(table.begin_discard(id, settle_used(id)));
    table.sub_live(block_of(id), 10);
    table.merged(table.freeze(), {{id, format::SegmentRecord{}}});
    EXPECT_EQ(table.settle(table.generation() - 1, whole), std::vector{id});
    EXPECT_EQ(table.info(id).state, SegmentState::discarding);
    EXPECT_EQ(table.clean(), before);
    EXPECT_EQ(table.discarding(), 1U);
    if (whole) {
      EXPECT_FALSE(table.discarded(id)) << "two are in flight";
    }
    EXPECT_TRUE(table.discarded(id));
    EXPECT_EQ(table.clean(), before + 1);
    EXPECT_EQ(table.discarding(), 0U);
  }
}

TEST_F(HolesTest, H31_HolesThatMayHaveBeenWrittenAreNotDiscarded) {
  const SegmentId id = take();
  EXPECT_FALSE(table.begin_discard(id, 100)) << "a head writes there";
  table.touch(block_of(id));
  table.add_live(block_of(id), 10, 1);
  table.close(id, 1);
  EXPECT_FALSE(table.begin_discard(id, 0)) << "in no settled map yet";
  const std::uint64_t settled = settle_again(id, 10);
  ASSERT_TRUE(table.open_holes(id, settled));
  EXPECT_FALSE(table.begin_discard(id, settled)) << "holes are being filled";
  table.touch(block_of(id, 20));
  table.close(id, 1);
  EXPECT_FALSE(table.begin_discard(id, settled)) << "block 20 is free in that map";
  const std::uint64_t next = settle_again(id, 11);
  table.add_in_flight(block_of(id, 30), 1);
  EXPECT_FALSE(table.begin_discard(id, next)) << "a move writes there";
  table.sub_in_flight(block_of(id, 30), 1);
  EXPECT_TRUE(table.begin_discard(id, next));
  EXPECT_FALSE(table.begin_discard(SegmentId{9}, next)) << "it is clean";
  EXPECT_FALSE(table.begin_discard(SegmentId{99}, next));
}

// Blocks that died in it since are not free in the settled map: they are no holes before the next one has settled. That
// is the map's business; here only that what is counted live follows.
TEST_F(HolesTest, BlocksThatComeAndGoAreCounted) {
  const SegmentId id = take();
  ASSERT_TRUE(table.open_holes(id, settle_used(id)));
  table.add_live(block_of(id, 20), 5, 2);
  table.sub_live(block_of(id), 3);
  EXPECT_EQ(table.info(id).live(), 12U);
}

TEST_F(SegmentTableTest, H39_WhatACheckpointWasPromisedIsCountedDownAsItTakesIt) {
  table.promise(2);
  EXPECT_TRUE(table.take(0));
  EXPECT_EQ(table.promised(), 2U) << "others take what is beside it";
  EXPECT_TRUE(table.take(1, 0, SegmentTable::From::promised));
  EXPECT_EQ(table.promised(), 1U);
  EXPECT_TRUE(table.take(1, 0, SegmentTable::From::promised));
  EXPECT_TRUE(table.take(1, 0, SegmentTable::From::promised)) << "more than it was promised is better than none";
  EXPECT_EQ(table.promised(), 0U);
}

}  // namespace
}  // namespace varve::segments
