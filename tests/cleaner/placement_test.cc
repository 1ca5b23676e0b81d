#include <gmock/gmock.h>

#include <map>
#include <set>

#include "cleaner/learned_state.h"
#include "cleaner/placement/quantisation.h"
#include "facts.h"
#include "format/estimate.h"

namespace varve::cleaner {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

std::unique_ptr<Placement> placement(std::string_view spelling, std::uint64_t capacity = 1 << 16) {
  return placement(spelling, PlacementScale{capacity, 16});
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
  sfs->observe(segments, 1000);
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

constexpr std::uint64_t kCapacity = 64 * 45;  // a thousand blocks at one rate are in the middle of an octave

// Writes of blocks drawn by lot, placed as the filesystem does it.
class Traffic {
 public:
  explicit Traffic(Placement& placement) : placement_(placement), last_(1000), code_(1000) {}

  // `count` writes, the given share of them to the first hundred of a thousand blocks. Returns the groups they went to.
  std::vector<unsigned> write(std::uint64_t count, double hot_share) {
    std::vector<unsigned> groups;
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool hot = static_cast<double>(random_.next() % 1000) < 1000 * hot_share;
      last_written_ = hot ? random_.next() % 100 : 100 + random_.next() % 900;
      groups.push_back(write_block(last_written_));
      if (++clock_ % (kCapacity / 64) == 0) placement_.observe({}, clock_);
    }
    return groups;
  }
  // Mean group of the next writes to the first hundred, and to the others.
  std::pair<double, double> mean_groups(double hot_share) {
    double sum[2] = {}, count[2] = {};
    for (int i = 0; i < 4000; ++i) {
      const unsigned group = write(1, hot_share).front();
      sum[last_written_ >= 100] += group;
      ++count[last_written_ >= 100];
    }
    return {sum[0] / count[0], sum[1] / count[1]};
  }
  double estimate(std::uint64_t block) const { return format::decode_interval(code_[block]); }

 private:
  unsigned write_block(std::uint64_t block) {
    WrittenBlock facts;
    if (last_[block]) {
      facts.interval = clock_ - last_[block];
      facts.previous_estimate = estimate(block);
      code_[block] = format::next_estimate(code_[block], static_cast<double>(facts.interval));
    }
    facts.estimate = estimate(block);
    facts.key = block;
    facts.clock = last_[block] = clock_;
    return placement_.place(facts);
  }

  Placement& placement_;
  SeededRandom random_{1};
  std::vector<std::uint64_t> last_;
  std::vector<std::uint8_t> code_;
  std::uint64_t clock_ = kCapacity / 64, last_written_ = 0;
};

TEST(Learned, WhereAllDieAtOneRateThereIsHardlyMoreThanOneGroup) {
  const auto learned = placement("learned", PlacementScale{kCapacity, 16, 64});
  Traffic traffic(*learned);
  traffic.write(16 * kCapacity, 0.1);
  std::map<unsigned, unsigned> counts;
  for (unsigned group : traffic.write(4000, 0.1)) ++counts[group];
  unsigned most = 0;
  for (const auto& [group, count] : counts) most = std::max(most, count);
  EXPECT_GT(most, 3600u);
}

TEST(Learned, RatesPart) {
  const auto learned = placement("learned", PlacementScale{kCapacity, 16, 16});
  Traffic traffic(*learned);
  traffic.write(16 * kCapacity, 0.9);
  // Rates of 0.009 and 0.00011: more than six octaves.
  const auto [hot, cold] = traffic.mean_groups(0.9);
  EXPECT_GT(cold, hot + 4);
}

TEST(Learned, WhatOutlivedItsEstimateSinks) {
  const auto learned = placement("learned:least=0", PlacementScale{kCapacity, 16, 16});
  Traffic traffic(*learned);
  traffic.write(16 * kCapacity, 0.9);
  const MovedBlock moved{.age = 600, .estimate = traffic.estimate(0)};
  const unsigned before = learned->place(moved);
  traffic.write(kCapacity, 0);  // the hundred are not written any more
  EXPECT_GT(learned->place(moved), before);
}

TEST(Learned, KeepsToTheGroupsItMayHave) {
  const auto learned = placement("learned:least=0:groups=2", PlacementScale{kCapacity, 16, 16});
  Traffic traffic(*learned);
  for (int i = 0; i < 40; ++i) {
    const auto groups = traffic.write(kCapacity / 64, 0.9);  // from one observation to the next
    EXPECT_LE(std::set<unsigned>(groups.begin(), groups.end()).size(), 2u);
  }
}

TEST(LearnedState, IsForTheSamePlacementOnly) {
  const auto sfs = placement("sfs:groups=2"), again = placement("sfs:groups=3"), sepbit = placement("sepbit");
  sfs->restore(std::vector<double>{0.001, 0.1});
  const LearnedState kept = keep_learned(*sfs);
  restore_learned(*again, kept);
  EXPECT_THAT(again->learned(), ElementsAre(0.001, 0.1));
  restore_learned(*sepbit, kept);
  EXPECT_THAT(sepbit->learned(), ElementsAre(0));
  EXPECT_EQ(keep_learned(*placement("none")), LearnedState{});
}

TEST(LearnedState, DistrustsTheDevice) {
  const auto sfs = placement("sfs:groups=2");
  LearnedState kept = keep_learned(*sfs);
  sfs->restore(std::vector<double>{0.001, 0.1});
  kept = keep_learned(*sfs);
  kept[1] = ~std::uint64_t{0};  // not a number
  restore_learned(*sfs, kept);
  EXPECT_THAT(sfs->learned(), ElementsAre(0.1));
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
