// Holes of used segments as places to write: plugging them with what lives elsewhere, and heads that thread through them.
// Contents, maps and counters stay what the model says, and what was let in finds its room.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/types.h"
#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "cleaner/workbench.h"
#include "fs/engine.h"
#include "space/admission.h"
#include "space/hole_feeder.h"
#include "space/holes.h"
#include "space/space.h"
#include "store/store.h"
#include "support/good.h"
#include "support/plugging.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kFileBytes = 512 * 1024;

class Holes : public ::testing::Test {
 protected:
  void make(std::uint64_t bytes, bool cleaner = true, bool background = false) {
    WorldParameters parameters;
    parameters.bytes = bytes;
    parameters.options = [=](fs::Options& options) {
      options.cleaner = cleaner;
      options.background = background;
    };
    world_ = std::make_unique<World>(parameters);
    ASSERT_TRUE(good(world_->start()));
  }
  store::Store& store() { return world_->fixture.store(); }
  std::uint64_t clean() { return store().segments().clean(); }
  void run(const std::string& text) { ASSERT_TRUE(good(world_->steps.run(step(text)))) << text; }
  void checkpoint() {
    ASSERT_TRUE(world_->fixture.checkpoint().ok());
  }
  // Files of half a MiB until the device refuses, or there are `most`; how many.
  std::uint64_t fill(std::uint64_t most = ~0ULL) {
    std::uint64_t files = 0;
    for (; files < most; ++files) {
      const std::uint64_t before = world_->steps.refused_for_space();
      EXPECT_TRUE(good(world_->steps.run(step(fmt::format("create /f{} 0644", files)))));
      if (world_->steps.refused_for_space() != before) break;
      EXPECT_TRUE(good(world_->steps.run(step(fmt::format("write /f{} 0 {} {}", files, kFileBytes, files + 1)))));
      if (world_->steps.refused_for_space() != before) break;
    }
    return files;
  }
  // Takes `percent` of all blocks away, in runs of up to `longest`.
  void punch(std::uint64_t files, std::uint64_t percent, std::uint64_t longest) {
    const std::uint64_t blocks = files * (kFileBytes / kBlockSize);
    for (std::uint64_t gone = 0; gone < blocks * percent / 100;) {
      const std::uint64_t length = dice_.between(1, longest);
      const std::uint64_t at = dice_.below(kFileBytes / kBlockSize - length + 1);
      run(fmt::format("fallocate /f{} punch {} {}", dice_.below(files), at * kBlockSize, length * kBlockSize));
      gone += length;
      if (HasFatalFailure()) return;
    }
  }
  void overwrite(std::uint64_t files, std::uint64_t times) {
    for (std::uint64_t i = 0; i < times; ++i) {
      const std::uint64_t length = dice_.percent(80) ? kBlockSize : dice_.between(1, 65536);
      const std::uint64_t at = dice_.below(kFileBytes / kBlockSize) * kBlockSize;
      run(fmt::format("write /f{} {} {} {}", dice_.below(files), at, std::min(length, kFileBytes - at), ++writes_));
      if (i % 37 == 0) run(fmt::format("fsync /f{}", dice_.below(files)));
      if (HasFatalFailure()) return;
    }
  }
  bool has_room_without_holes() {
    const Gate::Pass pass(store().gate());
    return store().space().has_room_without_holes();
  }
  void thread(const space::HoleFeederRules& rules) { store().hole_feeder().begin(this, rules); }
  void unthread() { store().hole_feeder().end(this); }
  void finish() {
    EXPECT_TRUE(good(world_->compare_now()));
    EXPECT_TRUE(good(world_->finish()));
  }

  std::unique_ptr<World> world_;
  Dice dice_{first_seed()};
  std::uint64_t writes_ = 1'000'000;
};

// --- plugging -----------------------------------------------------------------------------------------------------------

TEST_F(Holes, are_plugged_until_nothing_is_to_be_had) {
  make(48 * kMiB, false);
  const std::uint64_t files = fill();
  punch(files, 12, 6);
  checkpoint();
  for (int round = 0; round < 12; ++round) {
    const std::uint64_t before = clean();
    const auto done = plug_round(store(), 6);
    ASSERT_TRUE(done.ok()) << done.error().message();
    if (done->emptied.empty()) break;
    // Each of them is clean now; what the checkpoint took for nodes is all that is lost.
    EXPECT_GE(clean() + 3, before + done->emptied.size()) << "round " << round;
    for (SegmentId emptied : done->emptied) EXPECT_EQ(store().segments().info(emptied).live(), 0U);
    ASSERT_TRUE(good(world_->compare_now())) << "round " << round;
  }
  finish();
}

// Copying needs clean segments for what it moves; plugging has room for nothing but nodes to find.
TEST_F(Holes, are_plugged_where_copying_finds_no_room) {
  make(32 * kMiB, false);
  const std::uint64_t files = fill();
  punch(files, 8, 3);
  checkpoint();
  const std::uint64_t before = clean();
  ASSERT_LE(before, store().space().low_water() + 16);
  const auto done = plug_round(store(), 8);
  ASSERT_TRUE(done.ok()) << done.error().message();
  EXPECT_GE(done->emptied.size(), 4U);
  EXPECT_GT(clean(), before);
  finish();
}

// A block that dies while its segment is plugged, or on its way, is not brought back to life.
TEST_F(Holes, plugging_and_writing_take_turns) {
  make(32 * kMiB);
  const std::uint64_t files = fill();
  punch(files, 15, 8);
  for (int round = 0; round < 20; ++round) {
    overwrite(files, 60);
    const auto least = static_cast<std::uint32_t>(dice_.between(1, 8));
    ASSERT_TRUE(plug_round(store(), dice_.between(1, 6), {.least_part = least, .choice = 1.2}).ok());
    ASSERT_TRUE(good(world_->compare_now())) << "round " << round;
    if (round % 5 == 4) punch(files, 2, 4);
  }
  finish();
}

// --- threading ------------------------------------------------------------------------------------------------------------

TEST_F(Holes, take_what_users_write) {
  make(48 * kMiB);
  const std::uint64_t files = fill(60);
  punch(files, 25, 12);
  checkpoint();
  thread({.least_run = 1, .below = ~0ULL});
  const std::uint64_t before = clean();
  std::uint64_t refilled = 0;
  for (int i = 0; i < 12; ++i) {
    overwrite(files, 50);
    refilled = std::max(refilled, world_->fixture.fs().status().segments.refilling);
  }
  EXPECT_GT(refilled, 0U) << "status shows them";
  EXPECT_GE(clean() + 8, before) << "clean segments are for nodes and chunks only";
  unthread();
  checkpoint();
  EXPECT_EQ(world_->fixture.fs().status().segments.refilling, 0U);
  finish();
}

TEST_F(Holes, smaller_than_the_least_are_skipped) {
  make(32 * kMiB);
  const std::uint64_t files = fill(40);
  punch(files, 20, 3);
  checkpoint();
  thread({.least_run = 64, .below = ~0ULL});
  EXPECT_FALSE(store().hole_feeder().feed());
  thread({.least_run = 1, .below = ~0ULL});
  EXPECT_TRUE(store().hole_feeder().feed());
  finish();
}

TEST_F(Holes, take_small_pieces_while_large_ones_stay_together) {
  make(48 * kMiB, false);
  const std::uint64_t files = fill(50);
  punch(files, 25, 3);
  checkpoint();
  thread({.least_run = 1, .below = ~0ULL, .most_piece = 8});
  ASSERT_TRUE(store().hole_feeder().feed());
  auto refilled = [&] { return world_->fixture.fs().status().refilled_blocks_written; };
  for (std::uint64_t i = 0; i < 40; ++i) run(fmt::format("write /f{} {} 4096 {}", i, 2 * i * kBlockSize, ++writes_));
  run("fsync /f0");
  const std::uint64_t small = refilled();
  EXPECT_GE(small, 30U);  // a few may ride in the chunk
  run(fmt::format("write /f1 0 {} {}", 64 * kBlockSize, ++writes_));
  run("fsync /f1");
  EXPECT_EQ(refilled(), small);
  finish();
}

// Nobody writes small pieces any more, so the segments stand ready for ever, and nothing that dies there is ever used again.
TEST_F(Holes, that_stand_ready_are_cleaned_when_somebody_waits) {
  make(32 * kMiB, false);
  const std::uint64_t files = fill(40);
  punch(files, 5, 1);
  checkpoint();
  thread({.least_run = 1, .below = ~0ULL});
  ASSERT_TRUE(store().hole_feeder().feed());
  auto refilling = [&] { return world_->fixture.fs().status().segments.refilling; };
  ASSERT_GT(refilling(), 2U);
  for (std::uint64_t file = 0; file < files; ++file) run(fmt::format("truncate /f{} 4096", file));
  checkpoint();
  ASSERT_GT(refilling(), 2U);
  cleaner::Cleaner& cleaner = world_->fixture.fs().engine().cleaner();
  const cleaner::Round round = cleaner.run_round(true);
  EXPECT_EQ(refilling(), 0U);
  ASSERT_TRUE(store().checkpoints().make({.clean = false, .evacuate = round.emptied}).ok());
  finish();
}

TEST_F(Holes, that_are_too_small_are_not_taken_for_what_died_where_others_stand_ready) {
  make(32 * kMiB, false);
  const std::uint64_t files = fill(40);
  punch(files, 30, 1);
  checkpoint();
  thread({.least_run = 2, .below = ~0ULL});
  ASSERT_TRUE(store().hole_feeder().feed());
  EXPECT_FALSE(store().hole_feeder().give_up_stale());
  finish();
}

TEST_F(Holes, that_somebody_was_let_in_for_are_kept) {
  make(24 * kMiB, false);
  const std::uint64_t files = fill();
  punch(files, 10, 3);
  checkpoint();
  for (std::uint64_t i = 0; has_room_without_holes(); ++i) {
    run(fmt::format("write /f{} 0 {} {}", i % files, kFileBytes / 4, ++writes_));
    ASSERT_TRUE(world_->fixture.seal().ok());
  }
  thread({.least_run = 1, .below = ~0ULL});
  ASSERT_TRUE(store().hole_feeder().feed());
  run(fmt::format("write /f0 0 {} {}", 8 * kBlockSize, ++writes_));
  EXPECT_FALSE(store().hole_feeder().give_up_stale());
  ASSERT_TRUE(world_->fixture.seal().ok());
  EXPECT_TRUE(store().hole_feeder().give_up_stale());
  finish();
}

TEST_F(Holes, are_left_alone_while_there_are_clean_segments_enough) {
  make(32 * kMiB);
  const std::uint64_t files = fill(20);
  punch(files, 20, 8);
  checkpoint();
  thread({.least_run = 1, .below = 5});
  EXPECT_FALSE(store().hole_feeder().is_hungry());
  thread({.least_run = 1, .below = clean()});
  EXPECT_TRUE(store().hole_feeder().is_hungry());
  finish();
}

// The rule of reuse, as the device sees it: what is handed out is free in the settled map, whatever has died since.
TEST_F(Holes, H28_blocks_that_died_since_the_checkpoint_are_none) {
  make(32 * kMiB);
  const std::uint64_t files = fill(40);
  punch(files, 20, 8);
  checkpoint();
  punch(files, 20, 8);
  thread({.least_run = 1, .below = ~0ULL});
  ASSERT_TRUE(store().hole_feeder().feed());
  tree::BlockingSource source = store().trees().source();
  const auto& geometry = store().segments().geometry();
  std::uint64_t looked_at = 0;
  const Gate::Closure closed(store().gate());
  for (;;) {
    const format::Run run = store().space().allocate_in_hole(3);
    if (!run.blocks) break;
    const auto live = space::live_bits(source, store().trees().own_view(), geometry, geometry.segment_of(run.start));
    ASSERT_TRUE(live.ok());
    for (std::uint32_t b = 0; b < run.blocks; ++b, ++looked_at)
      ASSERT_FALSE((*live)[geometry.index_of(run.start + b)]) << "block " << (run.start + b).v;
  }
  EXPECT_GT(looked_at, 20U);
}

// With all sizes in holes, and with small pieces only: where heads have no room, large ones go into holes as well.
TEST_F(Holes, are_written_while_the_device_is_full) {
  make(24 * kMiB);
  const std::uint64_t files = fill();
  const std::uint64_t refused = world_->steps.refused_for_space();
  thread({.least_run = 1, .below = ~0ULL});
  for (int round = 0; round < 8; ++round) {
    if (round == 4) thread({.least_run = 1, .below = ~0ULL, .most_piece = 2});
    overwrite(files, 200);
    ASSERT_EQ(world_->steps.refused_for_space(), refused) << "an overwrite was refused";
  }
  for (std::uint64_t i = 0; i < files; ++i) run(fmt::format("unlink /f{}", i));
  finish();
}

TEST_F(Holes, come_and_go_with_the_option) {
  make(32 * kMiB);
  const std::uint64_t files = fill(45);
  punch(files, 15, 6);
  for (int round = 0; round < 24; ++round) {
    unthread();
    if (dice_.percent(60))
      thread({.least_run = static_cast<std::uint32_t>(dice_.between(1, 6)),
              .below = dice_.percent(30) ? store().space().low_water() + 8 : ~0ULL,
              .most_piece = dice_.percent(50) ? ~0U : static_cast<std::uint32_t>(dice_.between(1, 12))});
    overwrite(files, 40);
    if (round % 6 == 5) {
      ASSERT_TRUE(good(world_->compare_now())) << "round " << round;
      ASSERT_TRUE(world_->fixture.unmount().ok());
      ASSERT_EQ(check_image(world_->device), "") << "round " << round;
      ASSERT_TRUE(world_->fixture.mount().ok());
    }
  }
  finish();
}

// --- as strategies --------------------------------------------------------------------------------------------------------

constexpr std::string_view kStrategies[] = {"threaded", "adaptive", "hole-plugging", "threaded:small=split", "copying",
                                            "threaded:small=compact:least=6", "threaded:when=short", "hole-plugging:least=4:choice=3"};

TEST_F(Holes, strategies_that_write_them_are_switched_on_a_full_device) {
  make(24 * kMiB);
  const std::uint64_t files = fill();
  const std::uint64_t refused = world_->steps.refused_for_space();
  for (const std::string_view strategy : kStrategies) {
    ASSERT_TRUE(world_->fixture.fs().tune("strategy", strategy).ok()) << strategy;
    overwrite(files, 250);
    ASSERT_EQ(world_->steps.refused_for_space(), refused) << strategy;
    ASSERT_TRUE(good(foresight(world_->fixture))) << strategy;
  }
  EXPECT_GT(world_->fixture.fs().status().refilled_blocks_written, 500U);
  finish();
}

TEST_F(Holes, strategies_that_write_them_run_beside_operations) {
  make(24 * kMiB, true, true);
  const std::uint64_t files = fill();
  for (const std::string_view strategy : kStrategies) {
    ASSERT_TRUE(world_->fixture.fs().tune("strategy", strategy).ok()) << strategy;
    overwrite(files, 250);
    ASSERT_TRUE(good(world_->compare_now())) << strategy;
  }
  EXPECT_GT(world_->fixture.fs().status().refilled_blocks_written, 0U);
  finish();
}

TEST_F(Holes, are_joined_by_local_compaction) {
  make(32 * kMiB);
  const std::uint64_t files = fill(40);
  for (std::uint64_t file = 0; file < files; ++file)  // every other block, here and there
    for (std::uint64_t block = 4; block < 40; block += 2)
      run(fmt::format("fallocate /f{} punch {} {}", file, block * kBlockSize, kBlockSize));
  checkpoint();
  thread({.least_run = 4, .below = ~0ULL});
  ASSERT_FALSE(store().hole_feeder().feed());
  unthread();
  auto rule = cleaner::VictimRule::make("greedy");
  auto placement = cleaner::make_placement("none", {});
  auto strategy = cleaner::make_strategy("threaded:small=compact");
  ASSERT_TRUE(rule.ok() && placement.ok() && strategy.ok());
  cleaner::Task task;
  task.wanted = 1;
  task.for_room = false;
  cleaner::BadBlocks bad;
  cleaner::Workbench bench(store(), **rule, **placement, bad, task, [](const std::string&) {});
  const cleaner::Round round = (*strategy)->run(bench);
  EXPECT_TRUE(round.moved) << round.why;
  ASSERT_TRUE(store().checkpoints().make({.clean = false, .evacuate = round.emptied}).ok());
  thread({.least_run = 4, .below = ~0ULL});
  EXPECT_TRUE(store().hole_feeder().feed());
  unthread();
  finish();
}

// Everything at once, with crashes in between.
TEST_F(Holes, random_operations_with_both) {
  ScriptProfile profile;
  profile.steps = 600;
  profile.names = 8;
  profile.data_weight = 120;
  profile.file_bytes = 2 * kMiB;
  profile.write_bytes = 128 * 1024;
  profile.total_bytes = 20 * kMiB;
  profile.far_percent = 0;
  profile.checkpoint_weight = 3;
  const Budget budget(0.15);
  for (std::uint64_t seed = first_seed(); seed == first_seed() || budget.left(); ++seed) {
    make(16 * kMiB);
    const Script script = random_script(seed, profile);
    for (std::size_t i = 0; i < script.size(); ++i) {
      ASSERT_TRUE(good(world_->steps.run(script[i]))) << "seed " << seed << " step " << i;
      if (!world_->fixture.mounted()) continue;
      if (i % 40 == 7) thread({.least_run = 1 + static_cast<std::uint32_t>(i % 3), .below = ~0ULL, .most_piece = i % 80 == 7 ? ~0U : 6});
      if (i % 90 == 60) {
        ASSERT_TRUE(plug_round(store(), 1 + i % 5).ok());
      }
      if (i % 150 == 149) {
        ASSERT_TRUE(good(world_->compare_now())) << "seed " << seed << " step " << i;
      }
    }
    finish();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace varve::test
