#include "fuse/protocol/listing_position.h"

#include <gtest/gtest.h>

#include <bit>
#include <limits>

namespace varve::fuse {
namespace {

ListingPosition passed_on(std::uint64_t cookie, std::uint64_t last) {
  return ListingPosition::decode(ListingPosition{cookie, last}.encode()).value();
}

TEST(ListingPosition, PlacesInSmallDirectoriesAreExactAndFit32Bits) {
  for (const std::uint64_t last : {2U, 3U, 1000U, 32767U}) {
    for (const std::uint64_t cookie : {std::uint64_t{0}, last / 2, last - 1}) {
      EXPECT_LT((ListingPosition{cookie, last}.encode()), 1U << 31);
      EXPECT_EQ(passed_on(cookie, last).cookie, cookie);
      EXPECT_EQ(passed_on(cookie, last).last, last);
    }
  }
}

TEST(ListingPosition, EndsAreTheSameAndNotBetweenOthers) {
  for (const std::uint64_t last : {2ull, 32767ull, 32768ull, 1ull << 40, 1ull << 61}) {
    EXPECT_EQ((ListingPosition{last, last}.encode()), (ListingPosition{2, 2}.encode()));
    EXPECT_TRUE(passed_on(last, last).at_end());
  }
}

TEST(ListingPosition, AnEndSaysWhetherTheListingMayBeKept) {
  const std::uint64_t kept = ListingPosition{7, 7, true}.encode();
  EXPECT_LT(kept, 1U << 31);
  EXPECT_TRUE(ListingPosition::decode(kept)->at_end());
  EXPECT_TRUE(ListingPosition::decode(kept)->may_be_kept);
  EXPECT_FALSE(passed_on(7, 7).may_be_kept);
  EXPECT_EQ((ListingPosition{6, 7, true}.encode()), (ListingPosition{6, 7}.encode())) << "only the end says so";
}

// A program may seek to somewhere between the entries' positions.
TEST(ListingPosition, WhatWasNeverHandedOutIsNoEnd) {
  constexpr std::uint64_t kLast = 4002;
  for (std::uint64_t bits = 1; bits < (ListingPosition{kLast - 1, kLast}.encode()); bits += 7) {
    const auto position = ListingPosition::decode(bits);
    if (position) {
      EXPECT_LT(position->cookie, position->last);
      EXPECT_LE(position->last, kLast);
    }
  }
  EXPECT_FALSE(ListingPosition::decode(5u << 15 | 5).has_value());
  EXPECT_FALSE(ListingPosition::decode(5u << 15 | 6).has_value());
  EXPECT_FALSE(ListingPosition::decode(1ull << 35).has_value());
  EXPECT_FALSE(ListingPosition::decode(~0ull << 57 | 1ull << 40).has_value()) << "a negative one";
}

TEST(ListingPosition, NoneIsTheStart) { EXPECT_NE((ListingPosition{1, 2}.encode()), 0U); }

TEST(ListingPosition, EndsOfLargeDirectoriesAreRoundedUpOnce) {
  for (unsigned width = 15; width <= 40; ++width) {
    for (const std::uint64_t last : {(1ull << width) - 1, (1ull << width) - 12345, (1ull << (width - 1)) + 1}) {
      const auto once = passed_on(17, last);
      EXPECT_EQ(once.cookie, 17U);
      EXPECT_GE(once.last, last);
      EXPECT_LE(once.last - last, last >> 16) << last;
      EXPECT_EQ(passed_on(last - 1, once.last).last, once.last) << "it must not grow from request to request";
      EXPECT_EQ(passed_on(last - 1, once.last).cookie, last - 1);
      EXPECT_LT(static_cast<std::int64_t>(ListingPosition{17, last}.encode()), std::int64_t{1} << 62);
    }
  }
}

TEST(ListingPosition, BeyondThemThereIsNoEnd) {
  for (const std::uint64_t last : {(1ull << 40) + 1, 1ull << 61}) {
    EXPECT_EQ(passed_on(last - 1, last).cookie, last - 1);
    EXPECT_EQ(passed_on(last - 1, last).last, std::numeric_limits<std::uint64_t>::max());
    EXPECT_GT(static_cast<std::int64_t>(ListingPosition{last, last}.encode()), 0);
  }
}

}  // namespace
}  // namespace varve::fuse
