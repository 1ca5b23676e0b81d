// What is a tail, at each boundary of sizes and limits.
#include "changes/tail_rules.h"

#include <gtest/gtest.h>

namespace varve::changes {
namespace {

constexpr format::TailLimits kBoth{format::kMaxTail, format::kMaxLoggedTail};

TEST(TailRules, TheSizeSaysWhereTheLastPartStands) {
  EXPECT_EQ(place_of_tail(0, kBoth), TailPlace::block) << "nothing is there";
  EXPECT_EQ(place_of_tail(1, kBoth), TailPlace::kept);
  EXPECT_EQ(place_of_tail(format::kMaxTail, kBoth), TailPlace::kept);
  EXPECT_EQ(place_of_tail(format::kMaxTail + 1, kBoth), TailPlace::logged);
  EXPECT_EQ(place_of_tail(kBlockSize - 1, kBoth), TailPlace::logged);
  EXPECT_EQ(place_of_tail(kBlockSize, kBoth), TailPlace::block) << "a whole block";
  EXPECT_EQ(place_of_tail(7 * kBlockSize + 100, kBoth), TailPlace::kept) << "behind blocks";
  EXPECT_EQ(place_of_tail(format::kMaxFileBytes, kBoth), TailPlace::logged);
}

TEST(TailRules, WithoutALimitThereAreNone) {
  EXPECT_EQ(place_of_tail(100, {}), TailPlace::block);
  EXPECT_EQ(place_of_tail(100, {0, kBlockSize}), TailPlace::block) << "off is off for the log, too";
  EXPECT_EQ(place_of_tail(101, {100, 0}), TailPlace::block);
  EXPECT_EQ(place_of_tail(100, {100, 0}), TailPlace::kept);
}

TEST(TailRules, ATailGoesOnOnlyInItsBlock) {
  EXPECT_TRUE(stays_last(100, 200));
  EXPECT_TRUE(stays_last(200, 100));
  EXPECT_TRUE(stays_last(kBlockSize + 1, 2 * kBlockSize - 1));
  EXPECT_FALSE(stays_last(100, kBlockSize)) << "it is a block now";
  EXPECT_FALSE(stays_last(100, kBlockSize + 100)) << "it is not the last any more";
  EXPECT_FALSE(stays_last(kBlockSize + 100, 100));
  EXPECT_FALSE(stays_last(100, 0));
  EXPECT_FALSE(stays_last(0, 100)) << "there was none";
}

}  // namespace
}  // namespace varve::changes
