#include <gmock/gmock.h>

#include "cleaner/placement/quantisation.h"
#include "facts.h"

namespace varve::cleaner {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

std::unique_ptr<Placement> placement(std::string_view spelling, std::uint64_t capacity = 1 << 16) {
  auto made = make_placement(spelling, {capacity, 16});
  EXPECT_TRUE(made.ok()) << made.error().message();
  return std::move(*made);
}

SegmentFacts collected_after(std::uint8_t group, std::uint64_t life) {
  SegmentFacts facts = segment(1, 50, life);
  facts.group = group;
  return facts;
}

TEST(None, PutsEverythingTogether) {
  EXPECT_EQ(placement("none")->place(WrittenBlock{}), 0);
  EXPECT_EQ(placement("none")->place(MovedBlock{}), 0);
}

TEST(Split, KeepsWhatIsMovedApart) {
  EXPECT_EQ(placement("split")->place(WrittenBlock{}), 0);
  EXPECT_EQ(placement("split")->place(MovedBlock{}), 1);
}

TEST(Dac, ClimbsWithWritesAndFallsWithMoves) {
  const auto dac = placement("dac:groups=3");
  EXPECT_EQ(dac->place(WrittenBlock{}), 0);
  EXPECT_EQ(dac->place(WrittenBlock{.group = 0}), 1);
  EXPECT_EQ(dac->place(WrittenBlock{.group = 2}), 2);
  EXPECT_EQ(dac->place(WrittenBlock{.group = 9}), 0);  // from a placement with more groups
  EXPECT_EQ(dac->place(MovedBlock{.group = 2}), 1);
  EXPECT_EQ(dac->place(MovedBlock{.group = 0}), 0);
  EXPECT_EQ(dac->place(MovedBlock{.group = 9}), 2);
}

TEST(SepBit, LearnsFromSixteenSegments) {
  const auto sepbit = placement("sepbit");
  EXPECT_EQ(sepbit->place(WrittenBlock{.interval = 500}), 0);  // any known life is short at first
  EXPECT_EQ(sepbit->place(WrittenBlock{}), 1);
  EXPECT_EQ(sepbit->place(MovedBlock{.age = 1 << 30, .group = 1}), 3);
  for (int i = 0; i < 15; ++i) sepbit->collected(collected_after(0, 90));
  for (int i = 0; i < 20; ++i) sepbit->collected(collected_after(1, 1'000'000));  // not its business
  EXPECT_EQ(sepbit->place(WrittenBlock{.interval = 500}), 0);
  sepbit->collected(collected_after(0, 250));  // (15 * 90 + 250) / 16 = 100
  EXPECT_THAT(sepbit->learned(), ElementsAre(100));
  EXPECT_EQ(sepbit->place(WrittenBlock{.interval = 99}), 0);
  EXPECT_EQ(sepbit->place(WrittenBlock{.interval = 100}), 1);
  EXPECT_EQ(sepbit->place(MovedBlock{.age = 1 << 30, .group = 0}), 2);
  EXPECT_EQ(sepbit->place(MovedBlock{.age = 399, .group = 1}), 3);
  EXPECT_EQ(sepbit->place(MovedBlock{.age = 400, .group = 5}), 4);
  EXPECT_EQ(sepbit->place(MovedBlock{.age = 1600, .group = 2}), 5);
}

TEST(SepBit, KeepsWhatItLearned) {
  const auto before = placement("sepbit"), after = placement("sepbit");
  for (int i = 0; i < 16; ++i) before->collected(collected_after(0, 100));
  after->restore(before->learned());
  EXPECT_EQ(after->place(WrittenBlock{.interval = 100}), 1);
}

TEST(AgeChain, MovesOnWithEachMove) {
  const auto chain = placement("age-chain:groups=4");
  EXPECT_EQ(chain->place(WrittenBlock{.interval = 1, .estimate = 1}), 1);  // nothing learned yet
  EXPECT_EQ(chain->place(MovedBlock{.group = 0}), 1);
  EXPECT_EQ(chain->place(MovedBlock{.group = 1}), 2);
  EXPECT_EQ(chain->place(MovedBlock{.group = 3}), 3);
}

TEST(AgeChain, HotIsWhatKeepsDyingYoung) {
  const auto chain = placement("age-chain");
  chain->collected(collected_after(1, 100));
  EXPECT_EQ(chain->place(WrittenBlock{.interval = 50, .estimate = 60}), 0);
  EXPECT_EQ(chain->place(WrittenBlock{.interval = 50, .estimate = 160}), 1);
  EXPECT_EQ(chain->place(WrittenBlock{.interval = 150, .estimate = 60}), 1);
  EXPECT_EQ(chain->place(WrittenBlock{}), 1);
}

TEST(Interval, AStreamPerOctave) {
  const auto streams = placement("interval:groups=12:offset=8", 1 << 16);
  // log2(estimate / 2^16) + 8
  EXPECT_EQ(streams->place(WrittenBlock{.estimate = 256}), 0);
  EXPECT_EQ(streams->place(WrittenBlock{.estimate = 1024}), 2);
  EXPECT_EQ(streams->place(WrittenBlock{.estimate = 2047}), 2);
  EXPECT_EQ(streams->place(WrittenBlock{.estimate = 65536}), 8);
  EXPECT_EQ(streams->place(WrittenBlock{.estimate = 1e12}), 11);
  EXPECT_EQ(streams->place(WrittenBlock{.estimate = 1}), 0);
  EXPECT_EQ(streams->place(WrittenBlock{}), 11);
}

TEST(Interval, AgeRefutesAnEstimate) {
  const auto streams = placement("interval", 1 << 16);
  EXPECT_EQ(streams->place(MovedBlock{.age = 100, .estimate = 1024}), 2);
  EXPECT_EQ(streams->place(MovedBlock{.age = 4096, .estimate = 1024}), 4);
}

TEST(Quantisation, FewSegmentsAreTheirOwnCentres) {
  const std::vector<double> hotness = {5, 1, 3};
  EXPECT_THAT(quantise(Quantiser::iterative, hotness, 4, {}), ElementsAre(1, 3, 5));
}

TEST(Quantisation, CentresMoveToTheMeanOfTheNearest) {
  const std::vector<double> hotness = {1, 2, 3, 10, 11, 12, 100};
  // From 0 and 50: {1,2,3,10,11,12} and {100}, means 6.5 and 100; then nothing moves.
  EXPECT_THAT(quantise(Quantiser::iterative, hotness, 2, std::vector<double>{0, 50}), ElementsAre(6.5, 100));
  // From 2, 11 and 12: {1,2,3}, {10,11}, {12,100}; then {1,2,3}, {10,11,12}, {100}.
  EXPECT_THAT(quantise(Quantiser::iterative, hotness, 3, std::vector<double>{2, 11, 12}), ElementsAre(2, 11, 100));
}

TEST(Quantisation, StopsAfterThreeRounds) {
  // Each round the lower centre of {0, 1} swallows a few more; ten points 1, 2, 4 … 512.
  std::vector<double> hotness;
  for (int i = 0; i < 10; ++i) hotness.push_back(1 << i);
  const auto once = quantise(Quantiser::iterative, hotness, 2, std::vector<double>{0.5, 1});
  const auto again = quantise(Quantiser::iterative, hotness, 2, once);
  EXPECT_NE(once, again);  // it had not settled, and went on from where it was
}

TEST(Quantisation, SlicesAsThePaperNamesThem) {
  const std::vector<double> hotness = {0, 1, 2, 3, 4, 100};
  EXPECT_THAT(quantise(Quantiser::equal_range, hotness, 2, {}), ElementsAre(25, 75));
  EXPECT_THAT(quantise(Quantiser::equal_count, hotness, 2, {}), ElementsAre(1, DoubleNear(107.0 / 3, 1e-9)));
}

TEST(Sfs, HottestFirst) {
  const auto sfs = placement("sfs:groups=2");
  EXPECT_EQ(sfs->place(WrittenBlock{.estimate = 10}), 1);  // nothing is known of groups
  std::vector<SegmentFacts> segments = {segment(1, 50, 10), segment(2, 50, 10), segment(3, 50, 1000), segment(4, 50, 1000)};
  sfs->observe(segments);
  EXPECT_THAT(sfs->learned(), ElementsAre(0.001, 0.1));
  EXPECT_EQ(sfs->place(WrittenBlock{.estimate = 12}), 0);
  EXPECT_EQ(sfs->place(WrittenBlock{.estimate = 500}), 1);
  EXPECT_EQ(sfs->place(WrittenBlock{}), 1);
  EXPECT_EQ(sfs->place(MovedBlock{.age = 500, .estimate = 12}), 1);
}

TEST(Sfs, CentresOutliveAMount) {
  const auto sfs = placement("sfs:groups=2");
  sfs->restore(std::vector<double>{0.1, 0.001, 0});
  EXPECT_THAT(sfs->learned(), ElementsAre(0.001, 0.1));
}

TEST(Placements, StayWithinTheirGroups) {
  for (const PolicyName& name : registry().placements.names()) {
    const auto made = placement(name.name);
    for (std::uint64_t interval : {std::uint64_t{1}, std::uint64_t{1} << 20, std::uint64_t{1} << 40, kUnknown})
      for (unsigned group = 0; group < 256; ++group) {
        const auto from = static_cast<std::uint8_t>(group);
        const auto estimate = interval == kUnknown ? 0 : static_cast<double>(interval);
        EXPECT_LT(made->place(WrittenBlock{interval, estimate, from}), made->groups()) << name.name;
        EXPECT_LT(made->place(MovedBlock{interval, estimate, from}), made->groups()) << name.name;
      }
  }
}

}  // namespace
}  // namespace varve::cleaner
