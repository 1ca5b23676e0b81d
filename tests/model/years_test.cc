// What years of writing count up to: stored clocks of 32 bits begin anew after 2^32 units, 16384 devices full.
#include <gtest/gtest.h>

#include <vector>

#include "aging.h"
#include "cleaner/cleaner.h"
#include "cleaner/workbench.h"
#include "segments/log_clock.h"
#include "store/store.h"
#include "support/good.h"
#include "support/settings.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kAnew = 1ULL << 32;  // units, which are blocks on a small device

// Ages of all segments with blocks of files that the cleaner looks at.
std::vector<std::uint64_t> ages(store::Store& store) {
  auto rule = cleaner::VictimRule::make("greedy");
  auto placement = cleaner::make_placement("none", {});
  cleaner::BadBlocks bad;
  cleaner::Task task;
  const cleaner::Workbench bench(store, **rule, **placement, bad, task, [](const std::string&) {});
  std::vector<std::uint64_t> found;
  for (const cleaner::SegmentFacts& segment : bench.facts())
    if (!segment.holds_nodes) found.push_back(segment.age);
  return found;
}

class Years : public ::testing::TestWithParam<const char*> {};

TEST_P(Years, StoredClocksBeginAnew) {
  World world(world_of(GetParam(), "none"));
  ASSERT_EQ(world.start(), "");
  ASSERT_EQ(world.fixture.store().super().clock_unit, 1U);
  world.fixture.store().log_clock().advance(kAnew - 3 * kAgedBlocks / 2 - world.fixture.store().log_clock().now());
  Aging aging(world, 1);
  ASSERT_EQ(aging.fill(), "");
  for (int part = 0; part < 4; ++part) {
    ASSERT_EQ(aging.write(kAgedBlocks / 2), "");
    ASSERT_EQ(world.finish(), "") << "part " << part;  // the checker looks at clocks, too
  }
  EXPECT_GT(world.fixture.store().log_clock().now(), kAnew);
  const auto found = ages(world.fixture.store());
  ASSERT_FALSE(found.empty());
  for (const std::uint64_t age : found) EXPECT_LT(age, 8 * kAgedBlocks) << "nothing is older than this test";
}

// From then on nobody knows what is older than a snapshot: it holds all that is let go, and the checker has to take its word for it.
TEST(YearsWithSnapshots, HoldWhatCameAfterThem) {
  WorldParameters parameters;
  World world(parameters);
  ASSERT_EQ(world.start(), "");
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("create /old 0644; write /old 0 300000 1; checkpoint");
  world.fixture.store().log_clock().advance(kAnew + 1000 - world.fixture.store().log_clock().now());
  run("keep one; create /new 0644; write /new 0 300000 2; checkpoint; unlink /new; write /old 0 50000 3; checkpoint");
  EXPECT_GT(world.fixture.store().trees().own_view().tables.held_blocks, 80U) << "what no tree has is held, too";
  ASSERT_EQ(world.finish(), "");
  for (int i = 0; i < 6; ++i) run(fmt::format("move {}; checkpoint", i));
  ASSERT_EQ(world.finish(), "");
  run("keep two; create /newer 0644; write /newer 0 300000 4; checkpoint; unlink /newer; checkpoint; drop one");
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  ASSERT_EQ(world.finish(), "");
  run("drop two");
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_EQ(world.fixture.store().trees().own_view().tables.held_blocks, 0U);
  EXPECT_EQ(world.finish(), "");
}

// Clocks begin anew in the middle of it, or have done so before.
TEST(YearsWithSnapshots, StayWholeInRandomHistories) {
  const Budget budget(0.05);
  for (std::uint64_t seed = first_seed(), runs = 0; runs < 2 || budget.left(); ++seed, ++runs) {
    WorldParameters parameters;
    parameters.image.seed = seed;
    World world(parameters);
    ASSERT_EQ(world.start(), "");
    const std::uint64_t begin = kAnew + 1000 * (seed % 2) - 500;
    world.fixture.store().log_clock().advance(begin - world.fixture.store().log_clock().now());
    ASSERT_TRUE(good(run_script(world.steps, script("mkdir /first 0755; checkpoint")))) << "or a remount forgets the clock";
    ScriptProfile profile;
    profile.names = 8;
    profile.data_weight = 60;
    profile.total_bytes = 4u << 20;
    profile.reference_weight = 0;
    profile.checkpoint_weight = profile.snapshot_weight = profile.move_weight = profile.remount_weight = 6;
    ScriptGenerator generator(seed, profile);
    for (int part = 0; part < 4; ++part) {
      for (int i = 0; i < 150; ++i) ASSERT_TRUE(good(world.steps.run(generator.next(world.steps.model)))) << "seed " << seed;
      ASSERT_TRUE(good(world.finish())) << "seed " << seed << ", part " << part;
    }
    EXPECT_GT(world.fixture.store().log_clock().now(), kAnew);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, Years, ::testing::Values("greedy", "cost-benefit"));

}  // namespace
}  // namespace varve::test
