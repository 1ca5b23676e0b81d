#include "blocks/unit_cache.h"

#include <gtest/gtest.h>

namespace varve::blocks {
namespace {

constexpr std::size_t kUnitBytes = 32 * kBlockSize;

UnitName name_of(std::uint64_t place, std::uint32_t crc = 1) { return {BlockAddr{place}, {crc, 2, 3}}; }

AlignedBuffer content_of(std::byte value) {
  AlignedBuffer content(kUnitBytes);
  std::memset(content.data(), std::to_integer<int>(value), content.size());
  return content;
}

TEST(UnitCache, FindsWhatWasInserted) {
  UnitCache cache(1 << 20);
  EXPECT_EQ(cache.find(name_of(100)), nullptr);
  (void)cache.insert(name_of(100), content_of(std::byte{7}));
  const UnitContent found = cache.find(name_of(100));
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->span()[5], std::byte{7});
  EXPECT_EQ(cache.hits(), 1U);
  EXPECT_EQ(cache.misses(), 1U);
}

// The place has been freed and written again since.
TEST(UnitCache, AnotherUnitAtTheSamePlaceIsAnotherUnit) {
  UnitCache cache(1 << 20);
  (void)cache.insert(name_of(100, 1), content_of(std::byte{7}));
  EXPECT_EQ(cache.find(name_of(100, 9)), nullptr);
  (void)cache.insert(name_of(100, 9), content_of(std::byte{8}));
  EXPECT_EQ(cache.find(name_of(100, 1)), nullptr);
  ASSERT_NE(cache.find(name_of(100, 9)), nullptr);
  EXPECT_LT(cache.bytes(), 2 * kUnitBytes);
}

TEST(UnitCache, StaysWithinItsBoundAndKeepsWhatIsUsed) {
  UnitCache cache(4 * (kUnitBytes + 1024));
  for (std::uint64_t place = 1; place <= 4; ++place) (void)cache.insert(name_of(place), content_of(std::byte{1}));
  EXPECT_NE(cache.find(name_of(1)), nullptr);
  (void)cache.insert(name_of(5), content_of(std::byte{1}));
  EXPECT_NE(cache.find(name_of(1)), nullptr);
  EXPECT_EQ(cache.find(name_of(2)), nullptr);
  EXPECT_LE(cache.bytes(), 4 * (kUnitBytes + 1024));
}

TEST(UnitCache, ASmallerBoundHoldsAtOnceAndReadersKeepWhatTheyHave) {
  UnitCache cache(1 << 20);
  const UnitContent held = cache.insert(name_of(1), content_of(std::byte{7}));
  cache.bound(0);
  EXPECT_EQ(cache.bytes(), 0U);
  EXPECT_EQ(cache.find(name_of(1)), nullptr);
  EXPECT_EQ(held->span()[0], std::byte{7});
  const UnitContent passing = cache.insert(name_of(2), content_of(std::byte{8}));
  EXPECT_EQ(passing->span()[0], std::byte{8});
  EXPECT_EQ(cache.bytes(), 0U);
}

}  // namespace
}  // namespace varve::blocks
