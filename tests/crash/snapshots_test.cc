// Hazards of snapshots: what only they hold must stay, be found, and come back when they go (docs/reliability.md, H53 to H57).
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "fs/engine.h"
#include "snapshots/places.h"
#include "store/store.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

WorldParameters small_world() {
  WorldParameters parameters;
  parameters.bytes = 24u << 20;
  parameters.image.segment_blocks = 64;
  return parameters;
}

void run(World& world, const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; }

std::string look(World& world) {
  std::string failure = world.compare_now();
  return failure.empty() ? world.finish() : failure;
}

// The reverse map still says whose a dead block was. A cleaner that believes it would put old bytes into the file.
TEST(Hazards, H53_what_only_a_snapshot_holds_is_not_given_to_its_file) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  run(world, "create /f 0644; write /f 0 200000 1; checkpoint; keep old; write /f 0 200000 2; checkpoint");
  const std::uint64_t held = world.fixture.store().trees().own_view().tables.held_data;
  ASSERT_GE(held, 48U);
  for (std::uint64_t i = 0; i < 4; ++i) run(world, fmt::format("move {}; checkpoint", i));
  EXPECT_GT(world.fixture.store().trees().own_view().tables.places, 0U);
  EXPECT_EQ(world.fixture.store().trees().own_view().tables.held_data, held);
  EXPECT_TRUE(good(look(world)));
}

// The live tree, an old one and another old one that the block was moved between: three addresses for one block.
TEST(Hazards, H53_a_block_that_is_moved_again_and_again_is_found_by_all_its_names) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  run(world, "create /f 0644; write /f 0 60000 1; create /g 0644; checkpoint");
  for (int i = 0; i < 5; ++i) {
    run(world, fmt::format("keep k{}; clean compacting; write /g 0 100000 {}; checkpoint; truncate /g 0; checkpoint", i, i));
    for (std::uint64_t segment = 0; segment < 3; ++segment) run(world, fmt::format("move {}; checkpoint", segment));
    ASSERT_TRUE(good(look(world))) << i;
  }
  run(world, "unlink /f; checkpoint; move 0; checkpoint; move 1; checkpoint; drop k1; drop k3");
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  ASSERT_TRUE(good(look(world)));
  run(world, "move 0; checkpoint; drop k0; drop k2; drop k4");
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_TRUE(good(look(world)));
  EXPECT_EQ(world.fixture.store().trees().own_view().tables, format::SnapshotTables());
}

TEST(Hazards, H54_a_snapshot_is_there_with_its_whole_state_or_not_at_all) {
  const std::string before = "create /f 0644; write /f 0 50000 1; mkdir /d 0755";
  const std::string during = "write /f 4096 20000 2; create /d/a 0644; keep one; write /f 0 8192 3; unlink /d/a; keep two; "
                             "relabel one uno; drop two; append /f 10000 4; sync";
  EXPECT_TRUE(good(sweep_all({}, before, during, exhaustive())));
}

// A superblock has fields of snapshots in a sector of their own: a torn one mixes those of before and after with the rest.
TEST(Hazards, H54_superblocks_with_snapshots_may_be_torn) {
  const std::string before = "create /f 0644; write /f 0 50000 1; checkpoint";
  const std::string during = "keep one; write /f 0 8192 2; checkpoint; keep two; drop one; checkpoint; drop two; work; checkpoint";
  SweepOptions options = exhaustive();
  options.plan.seeds = 8;
  for (const bool in_place : {false, true}) {
    CrashSetup setup;
    setup.superblocks_in_place = in_place;
    EXPECT_TRUE(good(sweep_all(setup, before, during, options))) << in_place;
  }
}

TEST(Hazards, H55_what_is_moved_under_a_snapshot_is_in_one_place_or_the_other) {
  CrashSetup setup;
  setup.bytes = 12u << 20;
  setup.segment_blocks = 64;
  const std::string before = "create /f 0644; write /f 0 100000 1; checkpoint; keep one; write /f 0 60000 2; checkpoint";
  const std::string during = "move 0; checkpoint; move 1; write /f 0 30000 3; seal; checkpoint; keep two; clean copying; work; "
                             "clean compacting; write /f 30000 50000 4; checkpoint; drop one; work; work; sync";
  SweepOptions options = exhaustive();
  options.plan.seeds = 1;
  EXPECT_TRUE(good(sweep_all(setup, before, during, options)));
}

TEST(Hazards, H56_giving_back_goes_on_after_a_crash_and_ends_with_nothing_left) {
  const std::string before = "create /f 0644; write /f 0 300000 1; keep one; write /f 0 200000 2; keep two; "
                             "write /f 100000 200000 3; checkpoint";
  const std::string during = "drop one; work; drop two; work; work; work; work; checkpoint";
  SweepOptions options = exhaustive();
  options.plan.seeds = 2;
  EXPECT_TRUE(good(sweep_all({}, before, during, options)));
}

// Clocks in extents are of units. What is written right before and right after a snapshot must not fall into one.
TEST(Hazards, H57_a_snapshot_begins_a_unit_of_the_log_clock) {
  WorldParameters parameters;
  parameters.bytes = 4ULL << 30;  // four blocks to a unit
  World world(parameters);
  ASSERT_TRUE(good(world.start()));
  ASSERT_EQ(world.fixture.store().super().clock_unit, 4U);
  for (int i = 0; i < 9; ++i)
    run(world, fmt::format("create /f{0} 0644; write /f{0} 0 4096 1; keep k{0}; write /f{0} 0 4096 2; checkpoint; "
                           "write /f{0} 0 4096 3; checkpoint", i));
  // Each keeps one block of data: what came between two checkpoints after it is free.
  EXPECT_EQ(world.fixture.store().trees().own_view().tables.held_data, 9U);
  EXPECT_TRUE(good(world.compare_now()));
}

// They come and go with a checkpoint like those that are asked for. None is half there, and none comes back that had gone.
TEST(Hazards, H54_automatic_snapshots_are_there_with_their_whole_state_or_not_at_all) {
  CrashSetup setup;
  setup.protect = true;
  const std::string before = "create /f 0644; write /f 0 200000 1; mkdir /d 0755; pass 30000; checkpoint";
  const std::string during = "write /f 4096 60000 2; create /d/a 0644; pass 30000; checkpoint; write /f 0 80000 3; "
                             "unlink /d/a; pass 30000; checkpoint; append /f 10000 4; sync; pass 30000; checkpoint; move 0; "
                             "write /f 100000 50000 5; pass 30000; "
                             "checkpoint; keep mine; write /f 0 4096 6; pass 40000; checkpoint; sync";
  SweepOptions options = exhaustive();
  options.plan.seeds = 1;
  EXPECT_TRUE(good(sweep_all(setup, before, during, options)));
}

}  // namespace
}  // namespace varve::test
