// What policies are told of single blocks of a segment.
#include "segments/segment_samples.h"

#include <gtest/gtest.h>

#include "segments/segment_table.h"

namespace varve::segments {
namespace {

class SegmentSamplesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    table.finish_loading();
    table.samples().keep(4);
    id = *table.take(0);
    table.add_live(block(0), 2, 100);
  }
  BlockAddr block(std::uint32_t index) { return table.geometry().start_of(id) + index; }
  double mean() { return table.samples().mean_clock(id); }

  SegmentTable table{{BlockAddr{256}, 64, 16}};
  SegmentId id;
};

TEST_F(SegmentSamplesTest, AreOfWhatWasWritten) {
  EXPECT_EQ(mean(), 100);
  table.add_live(block(2), 2, 300);
  EXPECT_EQ(mean(), 200);
}

TEST_F(SegmentSamplesTest, KnowWhenABlockWasWrittenAnewElsewhere) {
  const SegmentId other = *table.take(0);
  table.add_live(table.geometry().start_of(other), 1, 500);
  table.sub_live(block(1), 1);
  EXPECT_EQ(mean(), 300);  // of 100 and 500
}

TEST_F(SegmentSamplesTest, EndWithTheSegmentsContent) {
  table.sub_live(block(0), 2);
  table.close(id, 1);
  const std::uint64_t frozen = table.freeze();
  table.merged(frozen, {{id, {}}});
  table.settle(frozen, false);
  table.prefer_lowest(true);
  ASSERT_EQ(*table.take(0), id);
  EXPECT_EQ(mean(), 0);
}

TEST_F(SegmentSamplesTest, AreKeptOnlyWhileTheyAreWanted) {
  table.samples().keep(4);
  EXPECT_EQ(mean(), 100);
  table.samples().keep(0);
  EXPECT_EQ(mean(), 0);
  table.add_live(block(5), 1, 700);
  table.samples().keep(8);
  EXPECT_EQ(mean(), 0);
}

}  // namespace
}  // namespace varve::segments
