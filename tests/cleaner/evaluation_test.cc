// Scores worked out by hand from the formulas at the head of each policy.
#include <gmock/gmock.h>

#include <cmath>

#include "facts.h"

namespace varve::cleaner {
namespace {

TEST(Greedy, CountsGarbage) {
  EXPECT_EQ(score("greedy", segment(1, 30, 5)), 70);
  EXPECT_EQ(score("greedy", segment(1, 100, 5)), 0);
}

TEST(CostBenefit, WeighsGarbageByAge) {
  // u = .6, age 799: .4 * 800 / 1.6
  EXPECT_DOUBLE_EQ(score("cost-benefit", segment(1, 60, 799)), 200);
  // A fuller segment that is old enough beats an emptier one that is young.
  EXPECT_GT(score("cost-benefit", segment(1, 80, 10'000)), score("cost-benefit", segment(2, 20, 100)));
}

TEST(CostBenefit, RootForm) {
  // u = .25, sealed 399: .75 / .25 * √400
  EXPECT_DOUBLE_EQ(score("cost-benefit:form=sqrt", segment(1, 25, 399)), 60);
}

TEST(CostBenefit, MeanAge) {
  SegmentFacts s = segment(1, 60, 0);
  s.mean_age = 799;
  EXPECT_DOUBLE_EQ(score("cost-benefit:age=mean", s), 200);
}

TEST(CostHotness, DividesByTheRateOfRewrites) {
  SegmentFacts s = segment(1, 50, 10);
  s.rate_sum = 5;  // .1 a block
  // .5 / (2 * .5 * .1)
  EXPECT_DOUBLE_EQ(score("cost-hotness", s), 5);
}

TEST(CostHotness, AgeRefutesAnEstimate) {
  SegmentFacts s = segment(1, 50, 1000);
  s.rate_sum = 5;  // says .1 a block, but on average nothing has come for 1000
  EXPECT_DOUBLE_EQ(score("cost-hotness", s), 500);
  s.rate_sum = 0;
  EXPECT_DOUBLE_EQ(score("cost-hotness", s), 500);
}

TEST(Mdc, GarbageSquaredOverTheRateOfDecline) {
  SegmentFacts s = segment(1, 50, 0);
  s.rate_sum = 2;
  EXPECT_DOUBLE_EQ(score("mdc", s), 0.125);
}

TEST(Mdc, CapsTheRateByAge) {
  SegmentFacts s = segment(1, 50, 99);
  s.rate_sum = 2;
  // 50 live blocks have survived 100 blocks of log clock: .5 at most, .25 / .5
  EXPECT_DOUBLE_EQ(score("mdc", s), 0.5);
  EXPECT_DOUBLE_EQ(score("mdc:cap=off", s), 0.125);
}

TEST(Fifo, GoesByTheTimeOfFilling) {
  SegmentFacts s = segment(1, 50, 7);
  s.sealed = 40;
  EXPECT_EQ(score("fifo", s), 40);
}

TEST(Timestamp, HasBothOrders) {
  EXPECT_GT(score("timestamp", segment(1, 50, 9)), score("timestamp", segment(2, 50, 8)));
  EXPECT_LT(score("timestamp:order=youngest", segment(1, 50, 9)), score("timestamp:order=youngest", segment(2, 50, 8)));
}

TEST(Reservoir, UsesTheSampledAge) {
  SegmentFacts s = segment(1, 60, 3);
  EXPECT_DOUBLE_EQ(score("reservoir", s), 1);  // .4 * 4 / 1.6
  s.sampled_age = 799;
  EXPECT_DOUBLE_EQ(score("reservoir", s), 200);
}

TEST(AgeThreshold, OnlyTheOldestCompete) {
  std::vector<SegmentFacts> segments;
  for (std::uint64_t i = 0; i < 100; ++i) segments.push_back(segment(i, 50, i));
  std::vector<double> scores(100);
  (*make_evaluation("age-threshold"))->evaluate(segments, scores);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(scores[i] == Evaluation::kNever, i < 80) << i;  // 20 %, being more than ten
  EXPECT_DOUBLE_EQ(scores[99], 60 * 100 + 40 * 50);  // oldest of the field, half garbage
  EXPECT_DOUBLE_EQ(scores[80], 40 * 50);             // its youngest
}

TEST(AgeThreshold, TenAtLeastButNoneBelowTheThreshold) {
  std::vector<SegmentFacts> segments;
  for (std::uint64_t i = 0; i < 20; ++i) segments.push_back(segment(i, 50, i));
  std::vector<double> scores(20);
  (*make_evaluation("age-threshold"))->evaluate(segments, scores);
  EXPECT_EQ(std::count(scores.begin(), scores.end(), Evaluation::kNever), 10);
  (*make_evaluation("age-threshold:older=15"))->evaluate(segments, scores);
  EXPECT_EQ(std::count(scores.begin(), scores.end(), Evaluation::kNever), 15);
}

TEST(AgeThreshold, LeavesFullSegmentsAlone) { EXPECT_EQ(score("age-threshold", segment(1, 100, 50)), Evaluation::kNever); }

}  // namespace
}  // namespace varve::cleaner
