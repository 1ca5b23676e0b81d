#include "segments/hole_pool.h"

#include <gtest/gtest.h>

namespace varve::segments {
namespace {

format::Run run(std::uint64_t start, std::uint32_t blocks) { return {BlockAddr{start}, blocks}; }

class HolePoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    pool.add(SegmentId{1}, {run(100, 4), run(110, 2)});
    pool.add(SegmentId{2}, {run(200, 8)});
  }
  HolePool pool;
};

TEST_F(HolePoolTest, IsTakenFromInTheOrderItWasFilled) {
  EXPECT_EQ(pool.take(3), run(100, 3));
  EXPECT_EQ(pool.take(3), run(103, 1)) << "a hole is never joined with the next";
  EXPECT_EQ(pool.take(9), run(110, 2));
  EXPECT_EQ(pool.take(9), run(200, 8));
  EXPECT_EQ(pool.take(1), run(0, 0));
}

TEST_F(HolePoolTest, KnowsWhatIsLeft) {
  EXPECT_EQ(pool.blocks(), 14U);
  EXPECT_EQ(pool.untouched(), 2U);
  pool.take(5);
  EXPECT_EQ(pool.blocks(), 10U);
  EXPECT_EQ(pool.untouched(), 1U);
}

TEST_F(HolePoolTest, SaysOnceWhichSegmentIsFull) {
  pool.take(4);
  EXPECT_TRUE(pool.take_finished().empty());
  pool.take(2);
  EXPECT_EQ(pool.take_finished(), std::vector{SegmentId{1}});
  EXPECT_TRUE(pool.take_finished().empty());
}

TEST_F(HolePoolTest, GivesUpWhatItHasBegun) {
  pool.give_up_begun();
  EXPECT_EQ(pool.blocks(), 14U) << "none is begun";
  pool.take(1);
  pool.give_up_begun();
  EXPECT_EQ(pool.blocks(), 8U);
  EXPECT_EQ(pool.take_finished(), std::vector{SegmentId{1}});
  EXPECT_EQ(pool.untouched(), 1U);
}

TEST_F(HolePoolTest, GivesUpAll) {
  pool.take(1);
  pool.give_up();
  EXPECT_EQ(pool.blocks(), 0U);
  EXPECT_EQ(pool.untouched(), 0U);
  EXPECT_EQ(pool.take_finished(), (std::vector{SegmentId{1}, SegmentId{2}}));
}

}  // namespace
}  // namespace varve::segments
