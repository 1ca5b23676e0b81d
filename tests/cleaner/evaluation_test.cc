// Scores worked out by hand from the formulas at the head of each policy.
#include <gmock/gmock.h>

#include <algorithm>
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
  evaluation("age-threshold")->evaluate(segments, scores);
  for (std::size_t i = 0; i < 100; ++i) EXPECT_EQ(scores[i] == Evaluation::kNever, i < 80) << i;  // 20 %, being more than ten
  EXPECT_DOUBLE_EQ(scores[99], 60 * 100 + 40 * 50);  // oldest of the field, half garbage
  EXPECT_DOUBLE_EQ(scores[80], 40 * 50);             // its youngest
}

TEST(AgeThreshold, TenAtLeastButNoneBelowTheThreshold) {
  std::vector<SegmentFacts> segments;
  for (std::uint64_t i = 0; i < 20; ++i) segments.push_back(segment(i, 50, i));
  std::vector<double> scores(20);
  evaluation("age-threshold")->evaluate(segments, scores);
  EXPECT_EQ(std::count(scores.begin(), scores.end(), Evaluation::kNever), 10);
  evaluation("age-threshold:older=15")->evaluate(segments, scores);
  EXPECT_EQ(std::count(scores.begin(), scores.end(), Evaluation::kNever), 15);
}

TEST(AgeThreshold, LeavesFullSegmentsAlone) { EXPECT_EQ(score("age-threshold", segment(1, 100, 50)), Evaluation::kNever); }

TEST(Decline, WithoutKnowledgeGoesByAge) {
  // u = .5: 1 + ln .5 = .30685; 20 deaths assumed in 20 * (900 + 100)
  EXPECT_NEAR(score("decline", segment(1, 50, 900)), 0.30685 * 1000, 0.01);
  EXPECT_EQ(score("decline", segment(1, 100, 900)), 0);
}

TEST(Decline, LearnsHowFastAGroupDies) {
  const auto decline = evaluation("decline:memory=100");
  // Two groups, one segment each, filled at clock 10000. In 1000 blocks of log clock 40 of 80 blocks die in group 0 and
  // one of 80 in group 1.
  auto facts = [](std::uint64_t clock, std::uint32_t hot_live, std::uint32_t cold_live) {
    std::vector<SegmentFacts> both = {segment(1, hot_live, clock - 10'000), segment(2, cold_live, clock - 10'000)};
    both[1].group = 1;
    return both;
  };
  decline->observe(facts(40'000, 80, 80), 40'000);
  decline->observe(facts(41'000, 40, 79), 41'000);
  // Now both stand at half: the hot one is worth waiting for.
  const auto now = facts(41'000, 50, 50);
  std::vector<double> scores(2);
  decline->evaluate(now, scores);
  // Ages of 31000: prior 20 / (20 * 31100). Group 0: (40·k + 20) / (60 * 1000·k + 622000), with k = 1 as forgetting comes first.
  const double worth = 0.306853;
  EXPECT_NEAR(scores[0], worth / (60.0 / 682'000), 1);
  EXPECT_NEAR(scores[1], worth / (21.0 / 701'500), 1);
}

TEST(Decline, ARefilledSegmentIsAnotherOne) {
  const auto decline = evaluation("decline");
  const std::vector<SegmentFacts> before = {segment(1, 100, 900)}, after = {segment(1, 50, 900)};
  decline->observe(before, 1000);
  decline->observe(after, 2000);  // filled at 1100, not at 100: the 50 did not die
  std::vector<double> scores(1);
  decline->evaluate(after, scores);
  EXPECT_NEAR(scores[0], score("decline", after[0]), 1e-6);
}

}  // namespace
}  // namespace varve::cleaner
