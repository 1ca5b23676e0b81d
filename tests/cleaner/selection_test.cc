#include <gmock/gmock.h>

#include <algorithm>

#include "facts.h"

namespace varve::cleaner {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

const SelectionLimits kNoLimits{.wanted = 1'000'000};

SelectionLimits limits(std::uint64_t wanted, std::uint64_t most_moved = 1'000'000, double max_utilisation = 1) {
  return {wanted, max_utilisation, [most_moved](const Victims& v) { return v.live() <= most_moved; }};
}

TEST(Best, RanksByScore) {
  EXPECT_THAT(choose("greedy", {segment(1, 30, 1), segment(2, 10, 1), segment(3, 20, 1)}, kNoLimits), ElementsAre(2, 3, 1));
}

TEST(Best, StopsWhenEnoughIsGained) {
  EXPECT_THAT(choose("greedy", {segment(1, 30, 1), segment(2, 10, 1), segment(3, 20, 1)},
                     limits(91, 1000)),
              ElementsAre(2, 3));  // 90 are not enough
}

TEST(Best, SkipsWhatIsTooMuchToMove) {
  EXPECT_THAT(choose("timestamp", {segment(1, 60, 9), segment(2, 50, 8), segment(3, 40, 7)},
                     limits(1000, 100)),
              ElementsAre(1, 3));
}

TEST(Best, CountsNodesApart) {
  std::vector<SegmentFacts> segments = {segment(1, 60, 9), segment(2, 50, 8)};
  segments[1].holds_nodes = true;
  SeededRandom random(1);
  const Victims victims = (*VictimRule::make("greedy"))->choose(segments, kNoLimits, random);
  EXPECT_EQ(victims.data, 60u);
  EXPECT_EQ(victims.nodes, 50u);
  EXPECT_EQ(victims.gain, 90u);
}

TEST(Best, LeavesTooFullSegmentsOut) {
  EXPECT_THAT(choose("timestamp", {segment(1, 99, 9), segment(2, 98, 8)},
                     limits(1000, 1000, 0.985)),
              ElementsAre(2));
  EXPECT_THAT(choose("greedy", {}, kNoLimits), IsEmpty());
}

TEST(DChoices, WithManyDrawsItIsTheBest) {
  std::vector<SegmentFacts> segments;
  for (std::uint64_t i = 0; i < 20; ++i) segments.push_back(segment(i, static_cast<std::uint32_t>(50 + i), 1));
  EXPECT_THAT(choose("d-choices:d=1000", segments, limits(100, 1000)), ElementsAre(0, 1, 2));
}

TEST(DChoices, OneDrawIsChance) {
  std::vector<SegmentFacts> segments;
  for (std::uint64_t i = 0; i < 100; ++i) segments.push_back(segment(i, static_cast<std::uint32_t>(i), 1));
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    sum += static_cast<double>(choose("d-choices:d=1", segments, limits(1, 1000), seed).front());
  EXPECT_NEAR(sum / 400, 49.5, 6);  // uniform: standard error 1.44
  sum = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed)
    sum += static_cast<double>(choose("d-choices:d=2", segments, limits(1, 1000), seed).front());
  EXPECT_NEAR(sum / 400, 33, 6);  // the smaller of two
}

TEST(DChoices, TakesEachSegmentOnce) {
  std::vector<SegmentFacts> segments;
  for (std::uint64_t i = 0; i < 10; ++i) segments.push_back(segment(i, 50, 1));
  auto ids = choose("d-choices:d=3", segments, kNoLimits);
  std::sort(ids.begin(), ids.end());
  EXPECT_THAT(ids, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
}

TEST(Segregation, TakesThoseOfLikeAge) {
  // By cost-benefit segment 1 is best: .5 * 1001 / 1.5.
  const std::vector<SegmentFacts> segments = {segment(1, 50, 1000), segment(2, 50, 500), segment(3, 90, 995),
                                              segment(4, 90, 1009), segment(5, 90, 1010)};
  EXPECT_THAT(choose("segregation:window=10", segments, kNoLimits), ElementsAre(1, 3, 4));
}

TEST(Segregation, VariantsOfThePublishedCode) {
  const std::vector<SegmentFacts> segments = {segment(1, 50, 1000), segment(2, 60, 2000), segment(3, 90, 1995),
                                              segment(4, 90, 1994)};
  EXPECT_THAT(choose("segregation:window=10:seed=oldest", segments, kNoLimits), ElementsAre(2, 3, 4));
  EXPECT_THAT(choose("segregation:window=10:seed=oldest:stop=segment", segments, kNoLimits), ElementsAre(2, 3));
}

TEST(Hybrid, SegregatesWhileSegmentsAreMixed) {
  // Segment 1 is best by cost-benefit and alone with its age; 2 is second best.
  std::vector<SegmentFacts> segments = {segment(1, 20, 1000), segment(2, 30, 2), segment(3, 40, 1)};
  EXPECT_THAT(choose("hybrid:window=10", segments, kNoLimits), ElementsAre(1, 2, 3));
  for (SegmentFacts& s : segments) s.mean_age = 100'000;
  EXPECT_THAT(choose("hybrid:window=10", segments, kNoLimits), ElementsAre(1));
}

TEST(Hybrid, GoesByTheShareOfMixedBlocks) {
  std::vector<SegmentFacts> segments = {segment(1, 20, 1000), segment(2, 30, 2), segment(3, 40, 1)};
  segments[2].mean_age = 100'000;  // 40 of 90 live blocks
  EXPECT_THAT(choose("hybrid:window=10", segments, kNoLimits), SizeIs(3));
  EXPECT_THAT(choose("hybrid:window=10:share=0.4", segments, kNoLimits), SizeIs(1));
}

TEST(VictimRule, CombinesAnyEvaluationWithAnySelection) {
  const std::vector<SegmentFacts> segments = {segment(1, 50, 1000), segment(2, 10, 5), segment(3, 90, 995)};
  EXPECT_THAT(choose("greedy+segregation:window=10", segments, kNoLimits), ElementsAre(2));
  EXPECT_THAT(choose("timestamp+segregation:window=10", segments, kNoLimits), ElementsAre(1, 3));
}

}  // namespace
}  // namespace varve::cleaner
