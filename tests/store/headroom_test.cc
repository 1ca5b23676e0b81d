// What a merge may write, computed by hand for small trees.
#include "space/headroom.h"

#include <gtest/gtest.h>

namespace varve::space {
namespace {

constexpr TreeSizes kSmall{.tree_blocks = 10, .live_blocks = 110, .reverse_leaves = 100, .reverse_per_leaf = 100,
                           .free_leaves = 1, .segment_blocks = 64};

TEST(Headroom, OfNothingIsItsEdgesAndTheMaps) {
  // Items: 8 edges. Reverse map: 2 * 8 / 100 + 4 * 8 / 64 + 8 edges = 8 leaves, and two above. Free map: 1 + 2. The image: 1.
  EXPECT_EQ(merge_blocks(kSmall, {}), 8U + (8 + 2) + (1 + 2) + 1);
}

TEST(Headroom, NeverWritesTheOldTreeMoreThanTwice) {
  const std::uint64_t all = merge_blocks(kSmall, {.places = 1'000'000});
  EXPECT_EQ(all, merge_blocks(kSmall, {.places = 10'000}));
  EXPECT_GT(all, merge_blocks(kSmall, {.places = 1}));
}

TEST(Headroom, NeverHasMoreReverseLeavesThanThereAre) {
  const std::uint64_t all = merge_blocks(kSmall, {.scattered = 1'000'000});
  EXPECT_EQ(all, merge_blocks(kSmall, {.scattered = 100}));
  EXPECT_LE(all, 8U + (100 + 100 / 48 + 2) + 3 + 1);
}

TEST(Headroom, NewItemsFillLeavesOfTheirOwn) {
  const TreeSizes empty{.reverse_leaves = 100, .reverse_per_leaf = 100, .free_leaves = 1, .segment_blocks = 64};
  EXPECT_GE(merge_blocks(empty, {.item_bytes = 100 << 10}), merge_blocks(empty, {}) + 100);
}

}  // namespace
}  // namespace varve::space
