// Every cleaning policy and placement under the model: whatever they choose, contents, maps and counters stay right.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>

#include <fmt/format.h>

#include "cleaner/cleaner.h"
#include "cleaner/mover.h"
#include "cleaner/victim_rule.h"
#include "cleaner/workbench.h"
#include "format/estimate.h"
#include "format/map_record.h"
#include "fs/engine.h"
#include "model/aging.h"
#include "segments/segment_table.h"
#include "store/store.h"
#include "support/good.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

std::uint64_t cleaned(World& world) { return world.fixture.fs().status().segments_cleaned; }

// Sums of rates in the free-region map, kept by differences, against the blocks' own estimates.
std::string compare_rates(World& world) {
  const auto settled = world.fixture.checkpoint();
  if (!settled.ok()) return settled.error().message();
  store::Store& store = world.fixture.store();
  cleaner::Mover mover(store);
  std::uint64_t all = 0;
  for (std::uint64_t i = 0; i < store.segments().geometry().count; ++i) {
    const auto live = mover.live_blocks(SegmentId{i});
    if (!live.ok()) return live.error().message();
    std::uint64_t sum = 0;
    for (const cleaner::LiveBlock& block : *live)
      if (!block.held) sum += format::rate_of(block.estimate);
    if (const auto kept = store.segments().info(SegmentId{i}).rate_sum; kept != sum)
      return fmt::format("segment {}: sum of rates {} instead of {}", i, kept, sum);
    all += sum;
  }
  return all > 0 ? "" : "no block has an estimate";
}

class EveryPolicy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryPolicy, keeps_what_the_model_says) {
  const auto slash = GetParam().find('/');
  World world(world_of(GetParam().substr(0, slash), GetParam().substr(slash + 1)));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(2 * kAgedBlocks)));
  EXPECT_GT(cleaned(world), 10U);
  EXPECT_EQ(world.steps.refused_for_space(), 0U);
  EXPECT_TRUE(good(compare_rates(world)));
  EXPECT_TRUE(good(world.finish()));
}

std::string test_name(const ::testing::TestParamInfo<std::string>& parameter) {
  std::string name = parameter.param;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(c); }, '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Victims, EveryPolicy,
                         ::testing::Values("greedy/split", "cost-benefit/split", "cost-benefit:form=sqrt/sepbit",
                                           "cost-hotness/sfs", "age-threshold/split", "mdc/interval", "decline/learned",
                                           "decline/dac", "fifo/age-chain", "timestamp:order=youngest/none",
                                           "segregation/none", "hybrid/sfs:quantiser=equi-width", "reservoir/split",
                                           "d-choices/none"),
                         test_name);

// Tells what it was asked last.
class AskedPlacement final : public cleaner::Placement {
 public:
  std::string_view name() const override { return "asked"; }
  unsigned groups() const override { return 1; }
  std::uint8_t place(const cleaner::WrittenBlock&) const override { return 0; }
  std::uint8_t place(const cleaner::MovedBlock& block) const override { return last = block, 0; }
  mutable cleaner::MovedBlock last;
};

// However hot a block was: once only a snapshot has it nobody rewrites it any more. Their segments' sums of rates say so, and so does
// what a placement hears of them, also after they were moved.
TEST(HeldBlocks, are_cold) {
  World world(world_of("cost-hotness", "sfs"));
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("create /f 0644; write /f 0 4000000 1");
  for (int i = 2; i < 6; ++i) run(fmt::format("write /f 0 2000000 {}; checkpoint", i));
  run("keep one; write /f 0 1000000 6; checkpoint");
  store::Store& store = world.fixture.store();
  auto rule = cleaner::VictimRule::make("cost-hotness");
  ASSERT_TRUE(rule.ok());
  const auto look = [&] {
    EXPECT_TRUE(good(compare_rates(world)));
    const std::uint64_t capacity = store.segments().geometry().count * store.segments().geometry().blocks;
    AskedPlacement placement;
    cleaner::BadBlocks bad;
    const cleaner::Task task;
    cleaner::Workbench bench(store, **rule, placement, bad, task, [](const std::string&) {});
    std::uint64_t held = 0, hot = 0;
    for (std::uint64_t i = 0; i < store.segments().geometry().count; ++i) {
      const auto live = bench.mover().live_blocks(SegmentId{i});
      ASSERT_TRUE(live.ok());
      for (const cleaner::LiveBlock& block : *live) {
        (void)bench.group_of(block, {});
        EXPECT_EQ(placement.last.estimate == 0, block.held || !block.estimate);
        EXPECT_EQ(placement.last.age >= capacity, block.held);
        held += block.held && block.estimate > 0;
        hot += !block.held && block.estimate > 0;
      }
    }
    EXPECT_GT(held, 200U);
    EXPECT_GT(hot, 200U);
  };
  look();
  for (std::uint64_t i = 0; i < store.segments().geometry().count; ++i) {
    cleaner::Mover mover(store);
    const auto live = mover.live_blocks(SegmentId{i});
    ASSERT_TRUE(live.ok());
    if (std::ranges::none_of(*live, &cleaner::LiveBlock::held)) continue;
    ASSERT_TRUE(mover.move(*live).ok());
    break;
  }
  look();
  run("drop one");
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_TRUE(good(compare_rates(world)));
  EXPECT_TRUE(good(world.finish()));
}

TEST(Samples, are_taken_for_the_policy_that_wants_them) {
  World world(world_of("reservoir", "split"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(kAgedBlocks / 4)));
  const segments::SegmentTable& segments = world.fixture.store().segments();
  std::uint64_t sampled = 0, used = 0;
  segments.for_each([&](SegmentId id, const segments::SegmentInfo& segment) {
    if (segment.group == format::kGroupNodes || segment.live() == 0) return;
    ++used;
    sampled += segments.samples().mean_clock(id) > 0;
  });
  EXPECT_GT(sampled, used / 2);
  EXPECT_TRUE(good(world.finish()));
}

// A plugin that answers with groups and segments that there are not.
class WildPlacement final : public cleaner::Placement {
 public:
  std::string_view name() const override { return "wild"; }
  unsigned groups() const override { return 256; }
  std::uint8_t place(const cleaner::WrittenBlock&) const override { return next(); }
  std::uint8_t place(const cleaner::MovedBlock&) const override { return next(); }

 private:
  std::uint8_t next() const { return static_cast<std::uint8_t>(37 * ++turn_); }
  mutable unsigned turn_ = 0;
};

class WildSelection final : public cleaner::VictimSelection {
 public:
  std::string_view name() const override { return "wild"; }
  cleaner::Victims select(std::span<const cleaner::SegmentFacts> segments, const cleaner::Evaluation& evaluation,
                          const cleaner::SelectionLimits& limits, Random&) const override {
    auto field = cleaner::candidates(segments, evaluation, limits);
    std::ranges::sort(field, std::greater(), &cleaner::Candidate::score);
    cleaner::Victims victims;
    for (const cleaner::Candidate& candidate : field)
      if (!cleaner::take(victims, *candidate.segment, limits)) break;
    const auto sound = victims.ids;
    victims.ids = {SegmentId{~0ULL}, SegmentId{segments.size() + 1'000'000}};
    for (SegmentId id : sound) victims.ids.insert(victims.ids.end(), {id, id, SegmentId{0}});
    return victims;
  }
};

TEST(Plugin, answers_that_make_no_sense_do_no_harm) {
  ASSERT_TRUE(cleaner::registry()
                  .placements
                  .add("wild", "", [](const auto&, const auto&) { return std::make_unique<WildPlacement>(); })
                  .ok());
  ASSERT_TRUE(
      cleaner::registry().selections.add("wild", "", [](const auto&) { return std::make_unique<WildSelection>(); }).ok());
  World world(world_of("greedy+wild", "wild"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(kAgedBlocks)));
  EXPECT_GT(cleaned(world), 10U);
  EXPECT_TRUE(good(world.finish()));
}

TEST(Tuning, policies_change_while_it_is_mounted) {
  World world(world_of("greedy", "none"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  const auto placements = cleaner::registry().placements.names();
  const auto rules = cleaner::victim_rules();
  for (std::size_t i = 0; i < std::max(placements.size(), rules.size()); ++i) {
    const std::string& rule = rules[i % rules.size()].name;
    const std::string& placement = placements[i % placements.size()].name;
    ASSERT_TRUE(world.fixture.fs().tune("policy", rule).ok()) << rule;
    ASSERT_TRUE(world.fixture.fs().tune("placement", placement).ok()) << placement;
    EXPECT_EQ(world.fixture.fs().status().victim_policy, rule);
    EXPECT_EQ(world.fixture.fs().status().placement, placement);
    ASSERT_TRUE(good(aging.write(kAgedBlocks / 3))) << rule << "/" << placement;
  }
  EXPECT_GT(cleaned(world), 10U);
  EXPECT_TRUE(good(world.finish()));
}

TEST(Tuning, refuses_what_there_is_not) {
  World world(world_of("greedy", "none"));
  ASSERT_TRUE(good(world.start()));
  EXPECT_TRUE(world.fixture.fs().tune("policy", "fancy").fails_with(Errc::invalid));
  EXPECT_TRUE(world.fixture.fs().tune("placement", "dac:groups=100").fails_with(Errc::invalid));
  EXPECT_TRUE(world.fixture.fs().tune("colour", "blue").fails_with(Errc::invalid));
  EXPECT_EQ(world.fixture.fs().status().victim_policy, "greedy");
}

TEST(Learned, what_a_placement_has_learned_outlives_the_mount) {
  World world(world_of("cost-benefit", "sfs:groups=3"));
  ASSERT_TRUE(good(world.start()));
  Aging aging(world, first_seed());
  ASSERT_TRUE(good(aging.fill()));
  ASSERT_TRUE(good(aging.write(kAgedBlocks)));
  const auto learned = [&world] {
    fs::Engine& engine = world.fixture.fs().engine();
    const Gate::Pass pass(engine.store().gate());
    return engine.cleaner().placement().learned();
  };
  const auto before = learned();
  ASSERT_EQ(before.size(), 3U);
  ASSERT_TRUE(world.fixture.unmount().ok());  // which may clean once more, and learn from it
  ASSERT_TRUE(world.fixture.mount().ok());
  const auto centres = learned();
  ASSERT_EQ(centres.size(), 3U);
  for (std::size_t i = 0; i < centres.size(); ++i) EXPECT_NEAR(centres[i], before[i], before[i] / 10);
  ASSERT_TRUE(world.fixture.unmount().ok());
}

}  // namespace
}  // namespace varve::test
