// Which segments may be written again.
#include "log/segment_table.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace varve::log {
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

TEST_F(SegmentTableTest, H39_WhatACheckpointWasPromisedIsCountedDownAsItTakesIt) {
  table.promise(2);
  EXPECT_TRUE(table.take(0));
  EXPECT_EQ(table.promised(), 2U) << "others take what is beside it";
  EXPECT_TRUE(table.take_promised(1));
  EXPECT_EQ(table.promised(), 1U);
  EXPECT_TRUE(table.take_promised(1));
  EXPECT_TRUE(table.take_promised(1)) << "more than it was promised is better than none";
  EXPECT_EQ(table.promised(), 0U);
}

}  // namespace
}  // namespace varve::log
