// A mount follows the limits that its memory group has at one look after the other.
#include "daemon/group_watch.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/types.h"

namespace varve::daemon {
namespace {

MemoryGroup group_of(std::uint64_t mib) { return {mib * kMiB, "/a/file", true}; }

class GroupWatchTest : public testing::Test {
 protected:
  static constexpr std::size_t kLimit = 400;  // MiB

  static GroupWatch mounted_with(std::size_t bound, std::uint64_t limit, bool is_chosen) {
    return {plan_memory(bound * kMiB, 1).value(), group_of(limit), is_chosen ? bound * kMiB : 0};
  }
  GroupWatch::Step look(std::uint64_t mib) { return watch_.look(group_of(mib)); }
  std::size_t bound() const { return watch_.plan().bound / kMiB; }

  GroupWatch watch_ = mounted_with(kLimit / 2, kLimit, false);
};

TEST_F(GroupWatchTest, AGroupThatIsAsItWasIsNoNews) {
  const auto step = look(kLimit);
  EXPECT_FALSE(step.is_new || step.gives_back || step.tells);
  const auto unread = watch_.look({});
  EXPECT_FALSE(unread.is_new || unread.gives_back || unread.tells);
}

TEST_F(GroupWatchTest, SmallChangesAreFollowedWhenTheyHaveBecomeALargeOne) {
  std::vector<std::size_t> bounds;
  for (std::uint64_t limit = kLimit; limit >= kLimit - 60; limit -= 5) {
    const auto step = look(limit);
    EXPECT_EQ(step.is_new, step.tells) << limit;
    if (step.is_new) bounds.push_back(bound());
  }
  EXPECT_EQ(bounds, (std::vector<std::size_t>{187, 175}));
}

TEST_F(GroupWatchTest, ALimitThatGoesALittleUpAndDownIsNoNews) {
  for (int i = 0; i < 100; ++i) {
    const auto step = look(kLimit + (i % 2 ? 24 : 0) - 12);
    EXPECT_FALSE(step.is_new || step.gives_back || step.tells);
  }
}

TEST_F(GroupWatchTest, MoreThanTheUsualBoundNeedsIsNoNews) {
  watch_ = mounted_with(256, 600, false);
  const auto step = look(900);
  EXPECT_FALSE(step.is_new || step.gives_back || step.tells);
}

TEST_F(GroupWatchTest, ASmallChangeIsToldThatLeavesTooLittle) {
  watch_ = mounted_with(60, 80, true);
  EXPECT_FALSE(look(81).tells);
  EXPECT_TRUE(look(79).tells);
  EXPECT_FALSE(look(78).tells) << "it is known";
  EXPECT_EQ(bound(), 60U);
}

// A checkpoint comes within a minute, and makes clean what has changes.
TEST_F(GroupWatchTest, ASmallerBoundGivesBackForMoreThanAMinute) {
  ASSERT_TRUE(look(200).gives_back);
  int looks = 0;
  for (; looks < 100 && look(200 + (looks == 2 ? 20 : 0)).gives_back; ++looks) {
  }
  EXPECT_GT(looks * GroupWatch::kPauseMs, 60'000) << "also when it may take a little more again";
  EXPECT_LT(looks, 100);
  EXPECT_FALSE(look(kLimit).gives_back);
}

TEST_F(GroupWatchTest, TheLogHasALineForEachOfAFewChanges) {
  for (const std::uint64_t limit : {240, 128, 480, 1024}) EXPECT_TRUE(look(limit).tells) << limit;
}

TEST_F(GroupWatchTest, ALimitThatNeverRestsIsFollowedAndToldOnceAMinute) {
  int lines = 0;
  for (int i = 0; i < 6 * 60; ++i) {
    const auto step = look(i % 2 ? 200 : 300);
    EXPECT_TRUE(step.is_new);
    lines += step.tells;
  }
  EXPECT_LE(lines, 60 + 5);
  EXPECT_GE(lines, 60);
  bool is_told = look(128).tells;
  for (int i = 0; i < 7; ++i) is_told |= look(128).tells;
  EXPECT_TRUE(is_told) << "the log ends with how it is";
}

}  // namespace
}  // namespace varve::daemon
