#include "blocks/promise.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "blocks/content.h"

namespace varve::blocks {
namespace {

TEST(Promise, NoiseHasNone) {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) EXPECT_FALSE(is_promising(test::noise(32, seed))) << seed;
}

TEST(Promise, TextAndZerosHaveOne) {
  EXPECT_TRUE(is_promising(test::text(32)));
  EXPECT_TRUE(is_promising(test::Content(32 * kBlockSize)));
}

TEST(Promise, AShortUnitIsJudgedToo) {
  EXPECT_TRUE(is_promising(test::text(2)));
  EXPECT_FALSE(is_promising(test::noise(2)));
}

TEST(Promise, LooksAtAllOfTheUnit) {
  test::Content half = test::noise(32);
  std::fill(half.begin() + 16 * kBlockSize, half.end(), std::byte{' '});
  EXPECT_TRUE(is_promising(half));
}

TEST(Promise, EntropyIsThatOfTheBytes) {
  EXPECT_EQ(sampled_entropy({}), 0.0);
  EXPECT_NEAR(sampled_entropy(test::Content(100)), 0.0, 1e-5);
  test::Content two(100);
  for (std::size_t i = 0; i < two.size(); i += 2) two[i] = std::byte{1};
  EXPECT_NEAR(sampled_entropy(two), 1.0, 1e-5);
  test::Content all(256);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::byte>(i);
  EXPECT_NEAR(sampled_entropy(all), 8.0, 1e-5);
}

}  // namespace
}  // namespace varve::blocks
