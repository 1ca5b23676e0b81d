// Snapshots under the model: whatever is written, cleaned and mounted again, each of them shows what was there when it was made.
// When the last has gone, so has all that was kept for them.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "checkpoint/superblock_keeper.h"
#include "cleaner/cleaner.h"
#include "cleaner/mover.h"
#include "fs/engine.h"
#include "jobs/clean_job.h"
#include "jobs/jobs.h"
#include "model/aging.h"
#include "model/strategy_names.h"
#include "segments/segment_table.h"
#include "snapshots/snapshot_change.h"
#include "snapshots/snapshots.h"
#include "store/store.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/waiting.h"
#include "support/world.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

WorldParameters small_world() {
  WorldParameters parameters;
  parameters.bytes = 48u << 20;
  return parameters;
}

ScriptProfile usual() {
  ScriptProfile profile;
  profile.names = 8;
  profile.data_weight = 60;
  profile.file_bytes = 1u << 20;
  profile.total_bytes = 6u << 20;
  profile.checkpoint_weight = 2;
  profile.reference_weight = 0;
  return profile;
}

const tree::TreeView& trees(World& world) { return world.fixture.store().trees().own_view(); }

// Compares, the kept states too, and has the checker read all of it.
std::string look(World& world) {
  std::string failure = world.compare_now();
  return failure.empty() ? world.finish() : failure;
}

// A snapshot that is given back, and one piece of its list of dead blocks has more old names than a checkpoint forgets at once: what is
// left of it waits for the next one.
void drop_one_with_many_old_names(World& world) {
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("create /f 0644; write /f 0 12000000 1; checkpoint; keep one");
  for (int i = 0; i < 40; ++i) run(fmt::format("move {}; checkpoint", i));
  ASSERT_GT(trees(world).tables.places, 2048U) << "not more than one checkpoint forgets";
  run("unlink /f; checkpoint; drop one");
  ASSERT_TRUE(world.fixture.store().snapshots().deletion_is_left());
}

// Nothing is left of snapshots, and the image says so to those that know none.
std::string gone_without_a_trace(World& world) {
  while (!world.steps.model.kept().empty())
    if (std::string failure = world.steps.run(step("drop " + world.steps.model.kept().begin()->first)); !failure.empty()) return failure;
  if (Status settled = world.fixture.settle_deletions(); !settled.ok()) return settled.error().message();
  const format::SnapshotTables& tables = trees(world).tables;
  if (tables != format::SnapshotTables())
    return fmt::format("{} blocks are still held, {} places are noted", tables.held_blocks, tables.places);
  if (world.fixture.store().superblocks().written().features.ro_compat) return "the feature bit is still set";
  return world.finish();
}

TEST(Snapshots, keep_a_file_that_is_overwritten_and_removed) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("create /f 0644; write /f 0 100000 1; mkdir /d 0755; create /d/g 0600; append /d/g 5000 2; keep first");
  ASSERT_TRUE(good(look(world)));
  run("write /f 8192 30000 3; truncate /d/g 100; rename /f /e move; checkpoint");
  ASSERT_TRUE(good(look(world)));
  run("keep second; unlink /e; unlink /d/g; rmdir /d; checkpoint");
  EXPECT_GT(trees(world).tables.held_blocks, 20U);
  ASSERT_TRUE(good(look(world)));
  run("drop first");
  ASSERT_TRUE(good(look(world)));
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  ASSERT_TRUE(good(look(world)));
  EXPECT_TRUE(good(gone_without_a_trace(world)));
}

// In the order in which they were made, from the newest on, and from the middle.
TEST(Snapshots, give_back_exactly_what_they_held) {
  for (const std::string order : {"0123", "3210", "1203", "2130"}) {
    World world(small_world());
    ASSERT_TRUE(good(world.start()));
    auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
    run("create /f 0644; write /f 0 400000 1; checkpoint");
    const std::uint64_t before = trees(world).data_blocks;
    for (int i = 0; i < 4; ++i)
      run(fmt::format("keep {0}; write /f {1} 100000 {0}; create /n{0} 0644; append /n{0} 50000 7; checkpoint; unlink /n{0}", i,
                      i * 40960));
    for (const char name : order) {
      run(fmt::format("drop {}", name));
      ASSERT_TRUE(world.fixture.settle_deletions().ok());
      ASSERT_TRUE(good(look(world))) << order;
    }
    // Then the checker finds an owner in the newest trees for each live block.
    EXPECT_TRUE(good(gone_without_a_trace(world))) << order;
    EXPECT_EQ(trees(world).data_blocks, before) << order;
  }
}

TEST(Snapshots, are_given_back_in_parts) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  drop_one_with_many_old_names(world);
  ASSERT_TRUE(good(look(world)));
  EXPECT_TRUE(good(gone_without_a_trace(world)));
}

// Nothing more is given back then, and a job that waited for that would wait for ever.
TEST(Snapshots, are_no_hindrance_to_a_job_of_a_mount_that_writes_nothing) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  drop_one_with_many_old_names(world);
  world.fixture.crash();
  world.fixture.options().read_only = world.fixture.options().background = true;
  ASSERT_TRUE(world.fixture.mount().ok());
  ASSERT_TRUE(world.fixture.store().snapshots().deletion_is_left());
  jobs::CleanRequest request;
  request.strategy = "copying";
  request.dry_run = true;
  ASSERT_TRUE(world.fixture.fs().start_clean(request).ok());
  wait_until([&] { return world.fixture.fs().clean_state().phase != jobs::CleanState::Phase::running; });
  EXPECT_EQ(world.fixture.fs().clean_state().phase, jobs::CleanState::Phase::finished);
  world.fixture.crash();
}

// What a checkpoint has to note about them is more than memory holds at once, so it is merged in parts.
TEST(Snapshots, need_little_memory) {
  WorldParameters parameters = small_world();
  constexpr std::size_t kMemory = 4u << 20;
  parameters.options = [](fs::Options& options) { options.memory_bytes = kMemory; };
  World world(parameters);
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("create /f 0644; write /f 0 4000000 1; create /g 0644; write /g 0 4000000 2; checkpoint; keep one; unlink /g; checkpoint; keep two");
  for (int turn = 0; turn < 3; ++turn) {
    const std::uint64_t before = trees(world).tables.places;
    for (int i = 0; i < 24; ++i) run(fmt::format("move {}", i));
    run("checkpoint");
    EXPECT_GT((trees(world).tables.places - before) * 240, kMemory / 32) << "all of it fits in memory";
    ASSERT_TRUE(good(look(world))) << turn;
  }
  run("unlink /f; checkpoint; drop one");
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  ASSERT_TRUE(good(look(world)));
  EXPECT_TRUE(good(gone_without_a_trace(world)));
}

TEST(Snapshots, have_names_like_files) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  auto change = [&](snapshots::SnapshotChange::Kind kind, const std::string& name, const std::string& to = {}) {
    return world.fixture.snapshot({kind, name, to});
  };
  using Kind = snapshots::SnapshotChange::Kind;
  ASSERT_TRUE(change(Kind::create, "a").ok());
  EXPECT_TRUE(change(Kind::create, "a").fails_with(Errc::exists));
  EXPECT_TRUE(change(Kind::create, "").fails_with(Errc::invalid));
  EXPECT_TRUE(change(Kind::create, "a/b").fails_with(Errc::invalid));
  EXPECT_TRUE(change(Kind::create, "..").fails_with(Errc::invalid));
  EXPECT_TRUE(change(Kind::create, std::string(256, 'x')).fails_with(Errc::invalid));
  ASSERT_TRUE(change(Kind::create, std::string(255, 'x')).ok());
  EXPECT_TRUE(change(Kind::remove, "b").fails_with(Errc::not_found));
  EXPECT_TRUE(change(Kind::rename, "b", "c").fails_with(Errc::not_found));
  EXPECT_TRUE(change(Kind::rename, "a", std::string(255, 'x')).fails_with(Errc::exists));
  ASSERT_TRUE(change(Kind::rename, "a", "c").ok());
  ASSERT_TRUE(world.fixture.unmount().ok());
  ASSERT_TRUE(good(check_image(world.device)));
  ASSERT_TRUE(world.fixture.mount().ok());
  EXPECT_EQ(world.fixture.fs().snapshots().snapshots.size(), 2U);
  EXPECT_EQ(world.fixture.fs().snapshots().snapshots.front().name, "c");
}

TEST(Snapshots, cost_nothing_where_there_are_none) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; write /f 0 100000 1; checkpoint; write /f 0 100000 2; checkpoint"))));
  EXPECT_EQ(trees(world).tables, format::SnapshotTables());
  EXPECT_EQ(world.fixture.store().superblocks().written().features.ro_compat, 0U);
}

// Many, each with little of its own; the one in the middle is deleted first.
TEST(Snapshots, are_many) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script("create /f 0644; write /f 0 200000 1"))));
  constexpr int kMany = 150;
  for (int i = 0; i < kMany; ++i)
    ASSERT_TRUE(good(run_script(world.steps, script(fmt::format("write /f {} 5000 {}; keep k{}", i % 40 * 4096, i, i)))));
  ASSERT_TRUE(good(look(world)));
  for (int i = kMany / 3; i < 2 * kMany / 3; ++i) ASSERT_TRUE(good(world.steps.run(step(fmt::format("drop k{}", i)))));
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  ASSERT_TRUE(good(look(world)));
  EXPECT_TRUE(good(gone_without_a_trace(world)));
}

// What stands behind the new end is moved, and found there; the addresses by which the old trees name it may be used again later.
TEST(Snapshots, go_with_a_filesystem_that_shrinks_and_grows) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
  run("create /fill 0644; append /fill 32000000 1; create /f 0644; write /f 0 400000 1; checkpoint; unlink /fill; checkpoint; keep old; "
      "write /f 0 200000 2; checkpoint; keep new; write /f 100000 300000 3; checkpoint; drop old");
  for (int i = 0; i < 3; ++i) {
    run("resize 29360128");
    ASSERT_EQ(world.fixture.store().superblocks().written().device_blocks, 29360128U / kBlockSize);
    ASSERT_TRUE(good(look(world))) << i;
    EXPECT_GT(trees(world).tables.places, 0U) << "nothing of them stood at the end";
    run(fmt::format("resize 67108864; create /n{0} 0644; append /n{0} 9000000 {0}; keep k{0}; unlink /n{0}; checkpoint; "
                    "drop k{0}; remount", i));
    ASSERT_TRUE(world.fixture.settle_deletions().ok());
    ASSERT_TRUE(good(look(world))) << i;
  }
  EXPECT_TRUE(good(gone_without_a_trace(world)));
}

// Files of 256 KiB until one does not fit. What was written of that one goes again.
std::uint64_t fill(World& world, const std::string& prefix) {
  constexpr std::size_t kBytes = 256u << 10;
  for (std::uint64_t i = 0;; ++i) {
    const std::string path = fmt::format("/{}{}", prefix, i);
    Status status;
    if (const auto made = world.fixture.make(path, 0100644); !made.ok()) status = made.error();
    else status = world.fixture.write(made->ino, 0, pattern_bytes(i, 0, kBytes));
    if (status.ok() && i < 10'000) continue;
    EXPECT_TRUE(status.fails_with(Errc::no_space)) << status.error().message();
    (void)world.fixture.call([&](fs::Operation& op) { return world.fixture.fs().unlink(op, kRootIno, path.substr(1)); });
    return i;
  }
}

void unlink_all(World& world, const std::string& prefix, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const Status gone = world.fixture.call(
        [&](fs::Operation& op) { return world.fixture.fs().unlink(op, kRootIno, fmt::format("{}{}", prefix, i)); });
    ASSERT_TRUE(gone.ok()) << i << ": " << gone.error().message();
  }
  ASSERT_TRUE(world.fixture.checkpoint().ok());
}

// The cleaner has looked at what lives in a segment; then its file is written to, and only the snapshot has it from then on.
TEST(Snapshots, are_moved_when_their_file_is_overwritten_meanwhile) {
  for (const std::string change : {"write /f 0 4000000 2", "unlink /f", "truncate /f 5000"}) {
    World world(small_world());
    ASSERT_TRUE(good(world.start()));
    auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))) << text; };
    run("create /f 0644; write /f 0 4000000 1; checkpoint; keep one");
    store::Store& store = world.fixture.store();
    cleaner::Mover mover(store);
    std::vector<cleaner::LiveBlock> live;
    SegmentId segment{0};
    for (; live.size() < store.segments().geometry().blocks / 2; segment = SegmentId{segment.v + 1}) {
      ASSERT_LT(segment.v, store.segments().geometry().count);
      const auto found = mover.live_blocks(segment);
      ASSERT_TRUE(found.ok());
      live = *found;
    }
    segment = SegmentId{segment.v - 1};
    run(change);
    ASSERT_TRUE(mover.move(live).ok());
    ASSERT_TRUE(store.checkpoints().make({.evacuate = {segment}}).ok());
    EXPECT_EQ(store.segments().info(segment).tree_live, 0U) << change;
    ASSERT_TRUE(good(look(world))) << change;
    EXPECT_TRUE(good(gone_without_a_trace(world))) << change;
  }
}

// A round has moved what a file has, which is then overwritten: the snapshot has it where it was, and it can be moved from there yet.
TEST(Snapshots, leave_no_segment_pinned_when_files_are_overwritten_between_a_round_and_its_checkpoint) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  auto run = [&](const std::string& text) { ASSERT_TRUE(good(run_script(world.steps, script(text)))); };
  run("create /f 0644; write /f 0 8000000 1; checkpoint");
  std::string holes;
  for (int i = 0; i < 900; ++i) holes += fmt::format("write /f {} 4096 {}; ", i * 8192, i + 10);
  run(holes + "checkpoint; keep one");
  cleaner::Cleaner& cleaner = world.fixture.fs().engine().cleaner();
  store::Store& store = world.fixture.store();
  const cleaner::Round round = cleaner.run_round(true);
  ASSERT_FALSE(round.emptied.empty()) << round.why;
  run("write /f 0 8000000 2");
  ASSERT_TRUE(store.checkpoints().make({.evacuate = round.emptied}).ok());
  const auto is_left = [&](SegmentId id) { return store.segments().info(id).tree_live > 0; };
  ASSERT_TRUE(std::ranges::any_of(round.emptied, is_left)) << "nothing was overwritten in time";
  for (int i = 0; i < 20 && std::ranges::any_of(round.emptied, is_left); ++i) {
    const cleaner::Round again = cleaner.run_round(true);
    EXPECT_EQ(cleaner.pinned_segments(), 0U) << again.why;
    ASSERT_TRUE(store.checkpoints().make({.evacuate = again.emptied}).ok());
  }
  EXPECT_EQ(std::ranges::count_if(round.emptied, is_left), 0);
  ASSERT_TRUE(good(look(world)));
  EXPECT_TRUE(good(gone_without_a_trace(world)));
}

// One is made and another gets its name, with the same checkpoint.
TEST(Snapshots, two_never_have_one_name) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  FsFixture& fixture = world.fixture;
  using Kind = snapshots::SnapshotChange::Kind;
  ASSERT_TRUE(fixture.snapshot({Kind::create, "b", {}}).ok());
  snapshots::Snapshots& snapshots = fixture.store().snapshots();
  const auto made = snapshots.ask({Kind::create, "a", {}}), renamed = snapshots.ask({Kind::rename, "b", "a"});
  fixture.fs().engine().jobs().maintenance().work(false);
  const auto first = snapshots.answer(made), second = snapshots.answer(renamed);
  ASSERT_TRUE(first && second);
  EXPECT_TRUE(first->ok());
  EXPECT_TRUE(second->fails_with(Errc::exists));
  EXPECT_EQ(snapshots.list().size(), 2U);
  EXPECT_TRUE(snapshots.find("a") && snapshots.find("b"));
}

// All that there is belongs to a snapshot: nothing can be written, everything can be removed, and it all comes back with the snapshot.
TEST(Snapshots, hold_everything_on_a_full_filesystem) {
  World world(small_world());
  ASSERT_TRUE(good(world.start()));
  FsFixture& fixture = world.fixture;
  using Kind = snapshots::SnapshotChange::Kind;
  const std::uint64_t all = fill(world, "a");
  ASSERT_GT(all, 80U);
  // Where what is held could not be noted any more, none is made.
  std::uint64_t left = all;
  Status kept = fixture.snapshot({Kind::create, "everything", {}});
  for (; !kept.ok() && left > 0; --left) {
    ASSERT_TRUE(kept.fails_with(Errc::no_space)) << kept.error().message();
    ASSERT_TRUE(fixture.call([&](fs::Operation& op) { return fixture.fs().unlink(op, kRootIno, fmt::format("a{}", left - 1)); }).ok());
    kept = fixture.snapshot({Kind::create, "everything", {}});
  }
  ASSERT_GT(left, all * 3 / 4);
  const Serial serial{fixture.fs().snapshots().snapshots.at(0).serial};
  const std::uint64_t before_removal = *fixture.available_bytes();
  unlink_all(world, "a", left);
  EXPECT_LE(*fixture.available_bytes(), before_removal + (1u << 20)) << "it is all held";
  const std::uint64_t few = fill(world, "b");
  EXPECT_LE(few, all - left + 4);
  ASSERT_TRUE(fixture.checkpoint().ok());
  for (std::uint64_t turn = 0; turn < 3; ++turn) {  // neither what is written over nor what is removed makes room that is not there
    unlink_all(world, "b", few);
    EXPECT_LE(fill(world, "b"), few + 1);
  }
  fixture.show(serial);
  for (std::uint64_t i = 0; i < left; ++i)
    ASSERT_EQ(*fixture.read(*fixture.resolve(fmt::format("/a{}", i)), 0, 256u << 10), pattern_bytes(i, 0, 256u << 10)) << i;
  fixture.show({});
  ASSERT_TRUE(fixture.unmount().ok());
  ASSERT_TRUE(good(check_image(world.device)));
  ASSERT_TRUE(fixture.mount().ok());
  ASSERT_TRUE(fixture.snapshot({Kind::remove, "everything", {}}).ok());
  ASSERT_TRUE(fixture.settle_deletions().ok());
  EXPECT_EQ(trees(world).tables, format::SnapshotTables());
  EXPECT_GE(fill(world, "c") + few, all - 2);
  ASSERT_TRUE(fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(world.device)));
  ASSERT_TRUE(fixture.mount().ok());
}

// Between random operations: made, deleted, renamed, and compared after everything that may move or drop blocks. With odd seeds the size
// changes as well.
class EveryStrategy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, leaves_snapshots_as_they_are) {
  const Budget budget(0.5 / static_cast<double>(every_strategy().size()));
  std::uint64_t moved = 0, runs = 0;
  for (std::uint64_t seed = first_seed(); runs == 0 || budget.left(); ++seed, ++runs) {
    WorldParameters parameters = small_world();
    parameters.image.seed = seed;
    World world(parameters);
    ASSERT_TRUE(good(world.start()));
    Dice dice(seed);
    ScriptProfile profile = usual();
    profile.move_weight = profile.seal_weight = profile.work_weight = 2;
    profile.snapshot_weight = 1;
    profile.resize_weight = seed % 2;
    profile.least_bytes = 24u << 20;
    ScriptGenerator generator(seed, profile);
    for (int part = 0; part < 10; ++part) {
      for (int i = 0; i < 150; ++i) ASSERT_TRUE(good(world.steps.run(generator.next(world.steps.model)))) << "seed " << seed;
      if (dice.percent(60)) {
        ASSERT_TRUE(world.fixture.clean(GetParam()).ok()) << "seed " << seed << ", part " << part;
      }
      ASSERT_TRUE(good(world.compare_now())) << "seed " << seed << ", part " << part;
      if (dice.percent(50)) {
        ASSERT_TRUE(world.fixture.settle_deletions().ok()) << "seed " << seed << ", part " << part;
      }
      ASSERT_TRUE(good(look(world))) << "seed " << seed << ", part " << part;
      moved += trees(world).tables.places;
      EXPECT_TRUE(good(foresight(world.fixture))) << "seed " << seed << ", part " << part;
    }
    ASSERT_TRUE(good(gone_without_a_trace(world))) << "seed " << seed;
  }
  EXPECT_GT(moved, 0U);
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, ::testing::ValuesIn(every_strategy()), name_of_strategy);

}  // namespace
}  // namespace varve::test
