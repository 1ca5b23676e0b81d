// Which operations are let in, without a device: the rules of space/admission.h on views made by hand.
#include "space/admission.h"

#include <gtest/gtest.h>

namespace varve::space {
namespace {

// 1000 segments of 512 blocks, half full, with nothing on its way.
SpaceView quiet() {
  SpaceView view;
  view.trees = {.tree_blocks = 4000,
                .live_blocks = 256'000,
                .reverse_leaves = 512'000 / 170,
                .reverse_per_leaf = 170,
                .free_leaves = 20,
                .segment_blocks = 512};
  view.clean = 500;
  view.users_reserve = users_reserve(1000);
  return view;
}

std::uint64_t fewest_clean(SpaceView view, bool frees) {
  for (view.clean = 0; !admits(view, frees);) ++view.clean;
  return view.clean;
}

TEST(Admission, LeavesSomeSegmentsToEachThatComesAfterUsers) {
  const SpaceView view = quiet();
  const std::uint64_t checkpoint = kept_segments(view, {});
  EXPECT_EQ(fewest_clean(view, true), checkpoint + kForCleaner);  // deletes leave the cleaner its own
  EXPECT_EQ(fewest_clean(view, false), std::max(view.users_reserve + 1, checkpoint + kForCleaner + kForFreeing));
}

TEST(Admission, PayloadTakesSegmentsUnlessThereIsRoomAtTheHead) {
  SpaceView view = quiet();
  const std::uint64_t without = kept_segments(view, {});
  view.waiting.payload = 10 * 512;
  const std::uint64_t with = kept_segments(view, {});
  EXPECT_GE(with, without + 10);
  view.head_blocks = 512;
  EXPECT_EQ(kept_segments(view, {}), with - 1);
  view.hole_blocks = 9 * 512;
  EXPECT_EQ(kept_segments(view, {}), with - 10);
}

// What goes into holes takes nothing from the users' share, but still all that sealing and merging it takes.
TEST(Admission, HolesLetUsersInWhereCleanSegmentsWouldNot) {
  SpaceView view = quiet();
  view.users_reserve = 200;
  view.clean = 150;
  view.waiting.payload = 100;
  EXPECT_FALSE(admits(view, false));
  view.hole_blocks = 99;
  EXPECT_FALSE(admits(view, false));
  view.hole_blocks = 100;
  EXPECT_TRUE(admits(view, false));
  view.clean = kept_segments(view, {}) + kForCleaner + kForFreeing - 1;
  EXPECT_FALSE(admits(view, false));
}

TEST(Admission, WhatCleaningHasEmptiedIsLent) {
  SpaceView view = quiet();
  view.users_reserve = 200;
  view.clean = 150;
  EXPECT_FALSE(admits(view, false));
  view.lent = 51;
  EXPECT_TRUE(admits(view, false));
  view.lent = 10'000;  // more than the reserve: never below what a checkpoint needs
  view.clean = kept_segments(view, {}) + kForCleaner + kForFreeing - 1;
  EXPECT_FALSE(admits(view, false));
}

TEST(Admission, APlannedEvacuationKeepsOperationsOut) {
  SpaceView view = quiet();
  const std::uint64_t before = fewest_clean(view, true);
  view.planned_evacuation = 5 * 512;
  EXPECT_GE(fewest_clean(view, true), before + 5);
}

TEST(Admission, WhatARunningCheckpointMayStillTakeIsNotThereTwice) {
  SpaceView view = quiet();
  const std::uint64_t before = fewest_clean(view, true);
  view.promised = 7;
  EXPECT_EQ(fewest_clean(view, true), before + 7);
}

TEST(Moves, ToGroup0CompeteWithWhatUsersHaveWaiting) {
  SpaceView view = quiet();
  const Demand moves = demand_of_moves(512, 512);
  view.head_blocks = 512;
  view.clean = kept_segments(view, moves);
  EXPECT_TRUE(admits_moves(view, moves, true, 512));  // all of it fits the head, if users have nothing
  view.waiting.payload = 512;
  view.clean = kept_segments(view, moves);
  EXPECT_FALSE(admits_moves(view, moves, true, 512));
  EXPECT_TRUE(admits_moves(view, moves, false, 512));  // the head of another group is not the users'
  ++view.clean;
  EXPECT_TRUE(admits_moves(view, moves, true, 512));
}

TEST(Moves, IntoHolesTakeNoSegmentButTheirCheckpointDoes) {
  SpaceView view = quiet();
  Demand moves = demand_of_moves(5120, 5120);
  moves.scattered = 3;
  view.clean = kept_segments(view, moves);
  EXPECT_TRUE(admits_moves(view, moves, true, 0));
  --view.clean;
  EXPECT_FALSE(admits_moves(view, moves, true, 0));
}

TEST(Spare, NeverCountsWhatOthersWaitFor) {
  SpaceView view = quiet();
  view.clean = std::max(view.users_reserve, kept_segments(view, {}) + kForFreeing + kForCleaner);
  EXPECT_EQ(spare_segments(view), 0U);
  view.clean -= 1;
  EXPECT_EQ(spare_segments(view), 0U);
  view.clean += 6;
  EXPECT_EQ(spare_segments(view), 5U);
}

// Of what stands in holes that nothing has been written to, the next checkpoint takes care.
TEST(Freeze, DoesNotReckonWithHolesThatStandReady) {
  SpaceView view = quiet();
  const std::uint64_t before = merge_need_at_freeze(view, 0);
  view.untouched_holes = 20;
  EXPECT_EQ(merge_need_at_freeze(view, 0), before);
  EXPECT_GT(merge_need(view, {}), before);
  view.waiting.scattered = 20;
  EXPECT_GT(merge_need_at_freeze(view, 0), before);
}

TEST(Relief, IsDueOnlyWhenAnotherOperationWouldSoonWait) {
  SpaceView view = quiet();
  EXPECT_FALSE(relief_is_due(view));
  view.clean = 20;
  EXPECT_FALSE(relief_is_due(view));  // a checkpoint would release nothing
  view.waiting.places = 5000;
  view.waiting.item_bytes = 500'000;
  EXPECT_TRUE(relief_is_due(view));
  view.clean = 500;
  EXPECT_FALSE(relief_is_due(view));
}

// As few as that are left only where a checkpoint alone still brings relief, and no operation waits yet.
TEST(LowWater, IsLowerWhileUsersWriteIntoHoles) {
  SpaceView view = quiet();
  ASSERT_LE(low_water_beside_holes(view), low_water(view));
  view.clean = low_water_beside_holes(view) + 1;
  view.hole_blocks = view.waiting.payload = 100;
  EXPECT_TRUE(admits(view, false));
  view.waiting.places = 5000;
  view.waiting.item_bytes = 500'000;
  EXPECT_TRUE(relief_is_due(view));
}

TEST(LowWater, LeavesRoomForWhatIsChangedDuringACheckpoint) {
  SpaceView view = quiet();
  const std::uint64_t before = low_water_beside_holes(view);
  view.users_reserve = 100;
  view.waiting.places = 5000;
  view.waiting.item_bytes = 500'000;
  view.usual_need = merge_need(view, {});
  view.clean = low_water_beside_holes(view) + 1;
  EXPECT_GT(view.clean, before);
  view.promised = view.usual_need / view.trees.segment_blocks + 1;
  view.waiting.places = 800;
  view.waiting.item_bytes = 80'000;
  view.hole_blocks = view.waiting.payload = 100;
  EXPECT_TRUE(admits(view, false));
}

// More demand never needs less room: the bounds may be added up.
TEST(Bounds, GrowWithEveryPartOfADemand) {
  const SpaceView view = quiet();
  const std::uint64_t none = merge_need(view, {});
  for (const Demand& more : {Demand{.record_bytes = 1 << 20}, Demand{.payload = 10'000}, Demand{.places = 500},
                             Demand{.item_bytes = 1 << 20}, Demand{.evacuated = 100}, Demand{.scattered = 4}}) {
    EXPECT_GT(merge_need(view, more), none);
    Demand twice = more;
    twice += more;
    EXPECT_GE(merge_need(view, twice), merge_need(view, more));
  }
}

TEST(Reserve, LeavesMostOfEachFilesystemToUsers) {
  for (const std::uint64_t segments : {64U, 256U, 1000U, 100'000U}) {
    EXPECT_GE(most_open_groups(segments), 1U);
    EXPECT_LT(most_open_groups(segments), 16U);
    EXPECT_EQ(most_open_groups(segments, 2), 0U) << "the chain, nodes and group 0 are always there";
    EXPECT_LE(most_open_groups(segments, 5), 1U) << "and superblocks have an area of their own";
    EXPECT_EQ(most_open_groups(segments, 64), most_open_groups(segments));
    EXPECT_GT(reserved_segments(segments), users_reserve(segments));
    EXPECT_LT(reserved_segments(segments), segments / 2);
  }
  EXPECT_LT(reserved_segments(100'000), 100'000U / 12);
}

}  // namespace
}  // namespace varve::space
