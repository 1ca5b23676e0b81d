// Snapshots that come and go by themselves: each shows what was there when it was made, whatever is written, cleaned and mounted again.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "fs/engine.h"
#include "fs/snapshot_looks.h"
#include "model/protected_world.h"
#include "model/strategy_names.h"
#include "snapshots/snapshot_change.h"
#include "snapshots/snapshots.h"
#include "store/store.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::test {
namespace {

TEST(Protection, keeps_the_states_of_the_last_minute) {
  ProtectedWorld world;
  EXPECT_EQ(world.automatic().size(), 1U) << "the state of the mount can be gone back to";
  world.run("create /f 0644; write /f 0 300000 0");
  for (int i = 1; i <= 20; ++i) world.run(fmt::format("write /f {} 50000 {}; pass 5000; work", i % 5 * 40960, i));
  const auto names = world.automatic();
  EXPECT_GE(names.size(), 5U);
  EXPECT_LE(names.size(), 8U);
  const auto has_its_time = [](const std::string& name) { return name.starts_with("auto-2023-11-14T22:1"); };
  EXPECT_TRUE(std::ranges::all_of(names, has_its_time)) << names.front();
  EXPECT_GT(world.steps.automatic_seen(), 8U);
  EXPECT_GT(world.trees().automatic.blocks, 12U);
  EXPECT_EQ(world.trees().automatic.blocks, world.trees().tables.held_blocks) << "nothing else holds anything";
  EXPECT_TRUE(good(world.look()));
}

TEST(Protection, makes_none_while_nothing_is_written) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 0; pass 10000; work");
  const std::uint64_t checkpoints = world.fixture.fs().status().checkpoints;
  const auto names = world.automatic();
  for (int i = 0; i < 20; ++i) world.run("pass 10000");
  EXPECT_FALSE(world.fixture.fs().engine().store().protection().is_due());
  EXPECT_FALSE(world.fixture.fs().engine().store().protection().is_pending());
  EXPECT_EQ(world.automatic(), names) << "the disk is not woken for their sake either";
  EXPECT_EQ(world.fixture.fs().status().checkpoints, checkpoints);
  world.run("write /f 0 4096 1; work");
  EXPECT_EQ(world.automatic().size(), 2U) << "the newest of those has what was there a minute ago, and this one is new";
  EXPECT_EQ(world.automatic().front(), names.back());
}

// The first thing in the morning is a mistake.
TEST(Protection, has_the_state_before_a_long_pause) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work; pass 36000000; unlink /f; pass 1000; checkpoint; pass 15000; work");
  const auto read = [&](std::uint64_t serial) {
    world.fixture.show(Serial{serial});
    const auto inode = world.fixture.resolve("/f");
    auto bytes = inode.ok() ? world.fixture.read(*inode, 0, 300000) : Result<format::Bytes>(inode.error());
    world.fixture.show({});
    return bytes;
  };
  const auto first = world.fixture.fs().snapshots().snapshots.front().serial;
  ASSERT_TRUE(read(first).ok());
  EXPECT_EQ(*read(first), pattern_bytes(1, 0, 300000));
  for (int i = 0; i < 10; ++i) world.run(fmt::format("create /g{} 0644; pass 15000; work", i));
  EXPECT_NE(world.fixture.fs().snapshots().snapshots.front().serial, first) << "it is not kept for longer than the window";
}

TEST(Protection, has_the_last_state_before_an_unmount) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work; write /f 0 300000 2");
  ASSERT_TRUE(world.fixture.unmount().ok());
  ASSERT_TRUE(good(check_image(world.device)));
  ASSERT_TRUE(world.fixture.mount().ok());
  const std::size_t count = world.automatic().size();
  world.run("unlink /f; pass 1000; checkpoint");
  ASSERT_TRUE(good(world.compare_now()));
  EXPECT_EQ(world.automatic().size(), count);
  ASSERT_FALSE(world.automatic().empty());
  world.fixture.show(Serial{world.fixture.fs().snapshots().snapshots.back().serial});
  const auto read = world.fixture.read(*world.fixture.resolve("/f"), 0, 300000);
  world.fixture.show({});
  EXPECT_EQ(*read, pattern_bytes(2, 0, 300000));
}

TEST(Protection, one_that_is_named_stays) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work; write /f 0 300000 2; pass 10000; work");
  const std::string name = world.automatic().at(1);
  world.run(fmt::format("write /f 0 100000 3; relabel {} good; write /f 0 200000 4; checkpoint", name));
  const auto is_good = [](const fs::SnapshotFacts& item) { return item.name == "good" && !item.automatic; };
  for (int i = 0; i < 20; ++i) world.run(fmt::format("write /f {} 8192 {}; pass 9000; work", i * 8192, i));
  ASSERT_TRUE(std::ranges::any_of(world.fixture.fs().snapshots().snapshots, is_good));
  ASSERT_TRUE(good(world.look()));
  EXPECT_LT(world.trees().automatic.blocks, world.trees().tables.held_blocks);
  world.remount({Mode::off, 0, 10});
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  ASSERT_TRUE(good(world.look()));
  EXPECT_TRUE(world.automatic().empty());
  ASSERT_EQ(world.fixture.fs().snapshots().snapshots.size(), 1U);
  EXPECT_EQ(world.trees().automatic.blocks, 0U);
  EXPECT_TRUE(is_good(world.fixture.fs().snapshots().snapshots.front()));
}

TEST(Protection, under_its_own_name_one_stays_too) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work");
  const std::string name = world.automatic().back();
  world.run(fmt::format("relabel {0} {0}", name));
  world.remount({Mode::off, 0, 10});
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  ASSERT_EQ(world.fixture.fs().snapshots().snapshots.size(), 1U);
  EXPECT_EQ(world.fixture.fs().snapshots().snapshots.front().name, name);
  EXPECT_TRUE(good(world.look()));
}

TEST(Protection, switched_off_gives_back_everything) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1");
  for (int i = 0; i < 4; ++i) world.run(fmt::format("pass 10000; write /f {} 60000 {}; work", i * 40960, i));
  ASSERT_GT(world.trees().tables.held_blocks, 30U);
  ASSERT_TRUE(world.fixture.fs().tune("protect", "off").ok());
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_EQ(world.trees().tables, format::SnapshotTables());
  world.run("pass 20000; write /f 0 4096 1; work");
  EXPECT_TRUE(world.automatic().empty());
  EXPECT_TRUE(good(world.look()));
  ASSERT_TRUE(world.fixture.fs().tune("protect", "1h").ok());
  EXPECT_EQ(world.automatic().size(), 1U) << "from now on this state can be gone back to";
  EXPECT_TRUE(world.fixture.fs().tune("protect", "soon").fails_with(Errc::invalid));
  EXPECT_TRUE(world.fixture.fs().tune("protect_every", "0").fails_with(Errc::invalid));
  EXPECT_EQ(world.fixture.fs().status().protection.window_s, 3600U);
}

TEST(Protection, what_a_mount_without_it_finds_goes_when_it_is_an_hour_old) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work; write /f 0 90000 2; pass 10000; work");
  const auto names = world.automatic();
  world.remount({});  // a tool's
  world.run("pass 100000000; write /f 0 4096 2; checkpoint");
  EXPECT_EQ(world.automatic(), names);
  world.clock.advance(-100'000'000'000'000);
  world.remount({Mode::fade, 0, 30});
  world.run("pass 100000; write /f 0 4096 2; checkpoint");
  EXPECT_EQ(world.automatic(), names);
  world.run("pass 3600000; write /f 0 4096 3; checkpoint");
  EXPECT_TRUE(world.automatic().empty());
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_EQ(world.trees().tables, format::SnapshotTables());
  EXPECT_TRUE(good(world.look()));
}

TEST(Protection, keeps_what_its_rules_say) {
  const ProtectionSettings settings = *snapshots::with_window({}, "1m,10m:2m,1h:10m");
  ProtectedWorld world(protected_world({settings.mode, settings.window_s, 10, settings.rules}));
  world.run("create /f 0644; write /f 0 300000 0");
  for (int i = 1; i <= 400; ++i) world.run(fmt::format("write /f {} 20000 {}; pass 11000; work", i % 9 * 20480, i));
  EXPECT_GE(world.automatic().size(), 5U + 4 + 5);
  EXPECT_LE(world.automatic().size(), 8U + 7 + 8);
  const fs::FilesystemStatus status = world.fixture.fs().status();
  EXPECT_EQ(status.snapshots.given_up, 0U);
  EXPECT_GT(status.snapshots.oldest_automatic_s, 3000U);
  ASSERT_EQ(status.snapshots.kept_by_rule.size(), 3U);
  const auto& kept = status.snapshots.kept_by_rule;
  EXPECT_EQ(kept[0] + kept[1] + kept[2], world.automatic().size());
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_TRUE(good(world.look())) << "each still has its state, whatever went from between them";
  ASSERT_TRUE(world.fixture.fs().tune("protect", "1m").ok());
  world.run("write /f 0 4096 1; pass 11000; work");
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_LE(world.automatic().size(), 8U);
  EXPECT_TRUE(good(world.look()));
}

// A month is not lost because the option was forgotten once.
TEST(Protection, what_a_mount_without_it_finds_stays_for_as_long_again) {
  const ProtectionSettings settings = *snapshots::with_window({}, "1m,20h:1h");
  ProtectedWorld world(protected_world({settings.mode, settings.window_s, 30, settings.rules}));
  world.run("create /f 0644; write /f 0 300000 0");
  for (int i = 1; i <= 100; ++i) world.run(fmt::format("write /f {} 20000 {}; pass 600000; work", i % 9 * 20480, i));
  const auto names = world.automatic();
  ASSERT_GE(names.size(), 16U);
  world.remount({Mode::fade, 0, 30});
  world.run("pass 7200000; write /f 0 4096 2; checkpoint");
  const auto left = world.automatic();
  EXPECT_GE(left.size() + 4, names.size());
  EXPECT_NE(left.front(), names.front()) << "those that have grown too old by now";
  world.run("pass 72000000; write /f 0 4096 3; checkpoint");
  EXPECT_TRUE(world.automatic().empty());
  EXPECT_TRUE(good(world.look()));
}

TEST(Protection, one_that_is_used_does_not_go_for_its_age) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work; write /f 0 300000 2; pass 10000; work");
  const Serial used{world.fixture.fs().snapshots().snapshots.at(1).serial};
  const std::vector<std::string> name{world.automatic().at(1)};
  world.fixture.fs().hold_snapshots([used] { return std::vector<Serial>{used}; });
  const auto write_on = [&] {
    for (int i = 0; i < 20; ++i) world.run(fmt::format("write /f {} 8192 {}; pass 9000; work", i * 8192, i));
  };
  write_on();
  EXPECT_EQ(world.automatic().front(), name.front()) << "the older one has gone";
  EXPECT_GT(world.automatic().size(), 5U);
  EXPECT_LT(world.automatic().size(), 10U);
  ASSERT_TRUE(good(world.look()));
  ASSERT_TRUE(world.fixture.mount().ok());
  world.fixture.fs().hold_snapshots([used] { return std::vector<Serial>{used}; });
  ASSERT_TRUE(world.fixture.fs().tune("protect", "off").ok());
  ASSERT_TRUE(world.fixture.settle_deletions().ok());
  EXPECT_EQ(world.automatic(), name);
  EXPECT_FALSE(world.fixture.store().protection().is_due()) << "checkpoint after checkpoint would be made in vain";
  EXPECT_EQ(world.fixture.fs().status().snapshots.given_up, 0U);
  world.fixture.fs().hold_snapshots({});
  world.run("write /f 0 4096 1; checkpoint");
  EXPECT_TRUE(world.automatic().empty());
  EXPECT_TRUE(good(world.look()));
}

// They come from a future that has been taken back: they must not stay for years.
TEST(Protection, a_clock_that_is_set_back_leaves_none_behind) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work");
  world.clock.advance(-100'000'000'000'000);
  world.remount(kOneMinute);
  for (int i = 0; i < 8; ++i) world.run(fmt::format("write /f 0 4096 {}; pass 10000; work", i));
  for (const fs::SnapshotFacts& item : world.fixture.fs().snapshots().snapshots)
    EXPECT_LE(item.made, world.clock.now()) << item.name;
}

TEST(Protection, one_from_the_future_is_shown_as_made_when_it_was_first_seen) {
  constexpr std::int64_t kThirtyYears = 946'080'000'000'000'000;
  ProtectedWorld world;
  world.clock.set_wall(kThirtyYears);
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work");
  const std::string name = world.automatic().back();
  ASSERT_TRUE(world.fixture.unmount().ok());
  world.clock.set_wall(0);
  const Timestamp mounted = world.clock.now();
  ASSERT_TRUE(world.fixture.mount().ok());
  world.clock.advance(7'000'000'000);
  const auto found = fs::find_snapshot(world.fixture.fs(), name);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->made.seconds, mounted.seconds);
  for (const fs::SnapshotFacts& item : world.fixture.fs().snapshots().snapshots) EXPECT_LE(item.made, world.clock.now()) << item.name;
}

// A computer without a battery for its clock begins in the past, and learns the time a little later.
TEST(Protection, a_clock_that_is_behind_at_first_gives_up_none) {
  constexpr std::int64_t kBehind = 100'000'000'000'000;
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work; write /f 0 300000 2; pass 10000; work");
  ASSERT_TRUE(world.fixture.unmount().ok());
  world.clock.set_wall(-kBehind);
  ASSERT_TRUE(world.fixture.mount().ok());
  const auto names = world.automatic();
  world.run("write /f 0 4096 3; pass 20000; checkpoint");
  EXPECT_TRUE(std::ranges::includes(world.automatic(), names)) << "nobody has set the clock yet";
  world.clock.set_wall(0);
  world.run("write /f 0 4096 4; checkpoint");
  EXPECT_EQ(std::ranges::count(world.automatic(), names.back()), 1) << "it is half a minute old";
}

// The network answers, and the clock goes from last week to today: they are seconds old all the same, also for the next mount.
TEST(Protection, a_clock_that_jumps_takes_none_away) {
  constexpr std::int64_t kTenDays = 864'000'000'000'000;
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 300000 1");
  for (int i = 0; i < 4; ++i) world.run(fmt::format("pass 10000; write /f 0 4096 {}; work", i));
  const auto names = world.automatic();
  ASSERT_GE(names.size(), 4U);
  for (const std::int64_t ahead : {kTenDays, -kTenDays, 1000 * kTenDays}) {
    world.clock.set_wall(ahead);
    world.run("write /f 0 4096 9; checkpoint");
    EXPECT_TRUE(std::ranges::includes(world.automatic(), names)) << ahead;
  }
  world.clock.set_wall(kTenDays);
  world.run("write /f 0 4096 10; checkpoint");
  world.remount(kOneMinute);
  world.run("write /f 0 4096 11; checkpoint");
  EXPECT_TRUE(std::ranges::includes(world.automatic(), names)) << "their times go by the clock as it is set now";
  for (int i = 0; i < 8; ++i) world.run(fmt::format("write /f 0 4096 {}; pass 10000; work", i));
  for (const std::string& name : names) EXPECT_EQ(std::ranges::count(world.automatic(), name), 0) << name;
  EXPECT_TRUE(good(world.look()));
}

// --- random operations -----------------------------------------------------------------------------------------------------------

class EveryStrategy : public ::testing::TestWithParam<std::string> {};

TEST_P(EveryStrategy, leaves_automatic_snapshots_as_they_are) {
  const Budget budget(0.5 / static_cast<double>(every_strategy().size()));
  std::uint64_t seen = 0, runs = 0;
  for (std::uint64_t seed = first_seed(); runs == 0 || budget.left(); ++seed, ++runs) {
    WorldParameters parameters = protected_world({Mode::on, 40, 8});
    parameters.image.seed = seed;
    ProtectedWorld world(parameters);
    Dice dice(seed);
    ScriptProfile profile;
    profile.names = 8;
    profile.data_weight = 60;
    profile.file_bytes = 1u << 20;
    profile.total_bytes = 6u << 20;
    profile.checkpoint_weight = 2;
    profile.reference_weight = 0;
    profile.move_weight = profile.seal_weight = profile.work_weight = 2;
    profile.snapshot_weight = 1;
    profile.resize_weight = seed % 2;
    profile.least_bytes = 24u << 20;
    ScriptGenerator generator(seed, profile);
    for (int part = 0; part < 8; ++part) {
      for (int i = 0; i < 120; ++i) {
        if (dice.percent(10)) world.run(fmt::format("pass {}", dice.below(9000)));
        ASSERT_TRUE(good(world.steps.run(generator.next(world.steps.model)))) << "seed " << seed << ", part " << part;
      }
      if (dice.percent(60)) {
        ASSERT_TRUE(world.fixture.clean(GetParam()).ok()) << "seed " << seed << ", part " << part;
      }
      ASSERT_TRUE(good(world.compare_now())) << "seed " << seed << ", part " << part;
      if (dice.percent(50)) {
        ASSERT_TRUE(world.fixture.settle_deletions().ok()) << "seed " << seed << ", part " << part;
      }
      ASSERT_TRUE(good(world.look())) << "seed " << seed << ", part " << part;
      EXPECT_TRUE(good(foresight(world.fixture))) << "seed " << seed << ", part " << part;
    }
    seen += world.steps.automatic_seen();
  }
  EXPECT_GT(seen, 20 * runs);
}

INSTANTIATE_TEST_SUITE_P(All, EveryStrategy, ::testing::ValuesIn(every_strategy()), name_of_strategy);

}  // namespace
}  // namespace varve::test
