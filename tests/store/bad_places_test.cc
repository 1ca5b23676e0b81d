// Which blocks have failed lately.
#include "device/bad_places.h"

#include <gtest/gtest.h>

namespace varve::device {
namespace {

constexpr std::uint64_t kHour = BadPlaces::kHourNs, kDay = BadPlaces::kDayNs;

TEST(BadPlaces, TheSameOneIsOne) {
  BadPlaces places;
  EXPECT_TRUE(places.add(BlockAddr{7}, 10));
  EXPECT_FALSE(places.add(BlockAddr{7}, 20));
  EXPECT_TRUE(places.add(BlockAddr{8}, 20));
  EXPECT_EQ(places.within(kHour, 30), 2U);
}

TEST(BadPlaces, CountsFromWhenItWasSeenLast) {
  BadPlaces places;
  places.add(BlockAddr{7}, 0);
  places.add(BlockAddr{8}, 0);
  places.add(BlockAddr{7}, kHour);
  EXPECT_EQ(places.within(kHour, kHour + 1), 1U);
  EXPECT_EQ(places.within(kDay, kHour + 1), 2U);
  EXPECT_EQ(places.within(kDay, kDay + 1), 1U);
}

TEST(BadPlaces, AfterADayItIsNewAgain) {
  BadPlaces places;
  places.add(BlockAddr{7}, 0);
  EXPECT_TRUE(places.add(BlockAddr{7}, kDay + 1));
}

TEST(BadPlaces, IsBoundedAndMakesRoomForWhatIsNew) {
  BadPlaces places;
  for (std::uint64_t i = 1; i <= BadPlaces::kMost + 50; ++i) EXPECT_EQ(places.add(BlockAddr{i}, 0), i <= BadPlaces::kMost);
  EXPECT_EQ(places.within(kDay, 0), BadPlaces::kMost);
  EXPECT_TRUE(places.add(BlockAddr{99999}, 2 * kDay));
  EXPECT_EQ(places.within(kDay, 2 * kDay), 1U);
}

}  // namespace
}  // namespace varve::device
