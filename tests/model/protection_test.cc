// Snapshots that come and go by themselves: each shows what was there when it was made, whatever is written, cleaned and mounted again. And
// what they hold is in nobody's way.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "fs/engine.h"
#include "model/strategy_names.h"
#include "store/checkpoints.h"
#include "store/protection.h"
#include "store/snapshot_change.h"
#include "store/snapshots.h"
#include "store/store.h"
#include "store/tree_view.h"
#include "store/trees.h"
#include "support/good.h"
#include "support/pattern.h"
#include "support/script_generator.h"
#include "support/settings.h"
#include "support/world.h"

namespace varve::test {
namespace {

using store::ProtectionSettings;
using Mode = ProtectionSettings::Mode;
using Kind = store::SnapshotChange::Kind;

constexpr ProtectionSettings kOneMinute{Mode::on, 60, 10};

WorldParameters protected_world(ProtectionSettings settings = kOneMinute, std::uint64_t bytes = 48u << 20) {
  WorldParameters parameters;
  parameters.bytes = bytes;
  parameters.options = [settings](fs::Options& options) { options.protection = settings; };
  return parameters;
}

struct ProtectedWorld : World {
  explicit ProtectedWorld(const WorldParameters& wanted = protected_world()) : World(wanted) {
    EXPECT_TRUE(good(start()));
  }
  void run(const std::string& text) { ASSERT_TRUE(good(run_script(steps, script(text)))) << text; }
  std::vector<std::string> automatic() {
    std::vector<std::string> names;
    for (const fs::SnapshotFacts& item : fixture.fs().snapshots().snapshots)
      if (item.automatic) names.push_back(item.name);
    return names;
  }
  const store::TreeView& trees() { return fixture.store().trees().own_view(); }
  std::string look() {
    std::string failure = compare_now();
    return failure.empty() ? finish() : failure;
  }
  void remount(ProtectionSettings settings) {
    ASSERT_TRUE(fixture.unmount().ok());
    fixture.options().protection = settings;
    ASSERT_TRUE(fixture.mount().ok());
  }
};

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
  EXPECT_FALSE(world.fixture.fs().engine().store().checkpoints().protection().is_due());
  EXPECT_FALSE(world.fixture.fs().engine().store().checkpoints().protection().is_pending());
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
  EXPECT_FALSE(world.fixture.store().checkpoints().protection().is_due()) << "checkpoint after checkpoint would be made in vain";
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

// A computer without a battery for its clock begins in the past, and learns the time a little later.
TEST(Protection, a_clock_that_is_behind_at_first_gives_up_none) {
  constexpr std::int64_t kBehind = 100'000'000'000'000;
  ProtectedWorld world;
  world.clock.advance(kBehind);
  world.run("create /f 0644; write /f 0 300000 1; pass 10000; work; write /f 0 300000 2; pass 10000; work");
  ASSERT_TRUE(world.fixture.unmount().ok());
  world.clock.advance(-kBehind);
  ASSERT_TRUE(world.fixture.mount().ok());
  const auto names = world.automatic();
  world.run("write /f 0 4096 3; pass 20000; checkpoint");
  EXPECT_TRUE(std::ranges::includes(world.automatic(), names)) << "nobody has set the clock yet";
  world.clock.advance(kBehind);
  world.run("write /f 0 4096 4; checkpoint");
  EXPECT_EQ(std::ranges::count(world.automatic(), names.back()), 1) << "it is half a minute old";
}

// --- room ---------------------------------------------------------------------------------------------------------------------

// Files of 128 KiB until one does not fit; each is written over a few times on the way. How many fit, and how often an operation waited
// for room on the way.
struct Filled {
  std::uint64_t files = 0, overwrites = 0, waits = 0;
};
Filled fill(ProtectedWorld& world) {
  constexpr std::size_t kBytes = 128u << 10;
  Filled filled;
  FsFixture& fixture = world.fixture;
  Dice dice(7);
  const auto write = [&](std::uint64_t file, std::uint64_t seed) {
    world.clock.advance(50'000'000);
    return fixture.write(*fixture.resolve(fmt::format("/f{}", file)), 0, pattern_bytes(seed, 0, kBytes));
  };
  for (;; ++filled.files) {
    Status status;
    if (const auto made = fixture.make(fmt::format("/f{}", filled.files), 0100644); !made.ok()) status = made.error();
    if (status.ok()) status = write(filled.files, filled.files);
    if (!status.ok()) {
      EXPECT_TRUE(status.fails_with(Errc::no_space)) << status.error().message();
      break;
    }
    for (int i = 0; i < 3; ++i, ++filled.overwrites) {
      const Status over = write(dice.below(filled.files + 1), filled.files + 1000);
      EXPECT_TRUE(over.ok()) << over.error().message() << " at file " << filled.files;
      if (!over.ok()) return filled;
    }
  }
  filled.waits = fixture.fs().status().waits[static_cast<std::size_t>(fs::WaitCause::space)].times;
  return filled;
}

TEST(Protection, nobody_is_refused_for_what_they_hold) {
  ProtectedWorld without(protected_world({Mode::leave, 0, 1}));
  const Filled plain = fill(without);
  ASSERT_GT(plain.files, 100U);
  for (const std::uint64_t every : {1, 5}) {
    ProtectedWorld world(protected_world({Mode::on, 600, every}));
    const Filled filled = fill(world);
    EXPECT_GE(filled.files + 1, plain.files) << every;
    EXPECT_GE(filled.overwrites + 3, plain.overwrites);
    EXPECT_GT(world.fixture.fs().status().snapshots.given_up, 0U);
    EXPECT_LE(filled.waits, plain.waits + plain.waits / 4 + 4) << every;
    // And over it again, with all of it full: the same as without.
    Dice dice(9);
    for (int i = 0; i < 600; ++i) {
      world.clock.advance(100'000'000);
      const auto ino = *world.fixture.resolve(fmt::format("/f{}", dice.below(filled.files)));
      ASSERT_TRUE(world.fixture.write(ino, 0, pattern_bytes(static_cast<std::uint64_t>(i), 0, 128u << 10)).ok()) << i;
    }
    EXPECT_TRUE(good(foresight(world.fixture)));
    ASSERT_TRUE(world.fixture.unmount().ok());
    EXPECT_TRUE(good(check_image(world.device)));
    ASSERT_TRUE(world.fixture.mount().ok());
  }
}

TEST(Protection, nobody_is_refused_for_those_that_are_used) {
  ProtectedWorld without(protected_world({Mode::leave, 0, 1}));
  const Filled plain = fill(without);
  ProtectedWorld world(protected_world({Mode::on, 600, 1}));
  world.fixture.fs().hold_snapshots([&store = world.fixture.store()] {
    std::vector<Serial> all;
    for (const auto& item : store.snapshots().list())
      if (item.serial.v % 2) all.push_back(item.serial);
    return all;
  });
  const Filled filled = fill(world);
  EXPECT_GE(filled.files + 1, plain.files);
  EXPECT_GE(filled.overwrites + 3, plain.overwrites);
  EXPECT_GT(world.fixture.fs().status().snapshots.given_up, 0U);
  EXPECT_TRUE(good(foresight(world.fixture)));
  ASSERT_TRUE(world.fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(world.device)));
  ASSERT_TRUE(world.fixture.mount().ok());
}

// Its room is charged like that of users: writes are refused in good time, so that files can still be removed.
TEST(Protection, one_that_a_tool_reads_stays_on_a_full_filesystem) {
  constexpr std::uint64_t kHeldBytes = 6'000'000;
  ProtectedWorld world(protected_world({Mode::on, 600, 1}));
  fs::Filesystem& fs = world.fixture.fs();
  world.run(fmt::format("create /g 0644; write /g 0 {} 1; pass 2000; work", kHeldBytes));
  const Serial read{fs.snapshots().snapshots.back().serial};
  ASSERT_TRUE(fs.hold_for_reader(read, 7, 3600).ok());
  ASSERT_TRUE(fs.hold_for_reader(read, 8, 60).ok());
  world.run("unlink /g; checkpoint");
  const auto remove_all = [&](std::uint64_t files) {
    for (std::uint64_t i = 0; i <= files; ++i) {
      const auto gone = world.fixture.call([&](fs::Operation& op) { return fs.unlink(op, kRootIno, fmt::format("f{}", i)); });
      EXPECT_TRUE(gone.ok() || (i == files && gone.fails_with(Errc::not_found))) << i;
    }
  };
  const Filled filled = fill(world);
  EXPECT_EQ(world.automatic().size(), 1U);
  EXPECT_TRUE(good(foresight(world.fixture)));
  world.fixture.show(read);
  EXPECT_EQ(*world.fixture.read(*world.fixture.resolve("/g"), 0, kHeldBytes), pattern_bytes(1, 0, kHeldBytes));
  world.fixture.show({});
  remove_all(filled.files);
  ASSERT_TRUE(fs.hold_for_reader(read, 7, 0).ok());
  world.clock.advance(61'000'000'000);  // the other tool was killed
  const Filled again = fill(world);
  EXPECT_GE(again.files, filled.files + kHeldBytes / (128u << 10) - 4);
  EXPECT_FALSE(fs.engine().store().snapshots().find(read));
  EXPECT_TRUE(fs.hold_for_reader(read, 7, 60).fails_with(Errc::stale));
  ASSERT_TRUE(world.fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(world.device)));
  ASSERT_TRUE(world.fixture.mount().ok());
}

// Not all of what they hold alone is known then: before anything is refused it is given up.
TEST(Protection, nobody_is_refused_for_what_they_hold_beside_others) {
  std::uint64_t plain = 0;
  for (const bool is_protected : {false, true}) {
    ProtectedWorld world(protected_world({is_protected ? Mode::on : Mode::leave, 600, 1}));
    world.run("create /g 0644; write /g 0 3000000 1; checkpoint; keep one");
    for (int i = 0; i < 10; ++i) world.run(fmt::format("pass 1000; write /g {} 300000 {}; work", i * 300000, i));
    if (is_protected) world.run(fmt::format("relabel {} two; remount", world.automatic().at(4)));
    else world.run("remount");
    if (is_protected) {
      EXPECT_GT(world.trees().automatic.most, world.trees().automatic.blocks) << "it is known";
    }
    const Filled filled = fill(world);
    if (!is_protected) plain = filled.files;
    const std::uint64_t kept = is_protected ? 3 + 2 * 8 : 0;  // what `two` holds: all that was written since it, of files of 128 KiB
    EXPECT_GE(filled.files + kept, plain);
    ASSERT_TRUE(world.fixture.unmount().ok());
    EXPECT_TRUE(good(check_image(world.device)));
    ASSERT_TRUE(world.fixture.mount().ok());
  }
}

TEST(Protection, what_they_hold_counts_as_free) {
  ProtectedWorld world;
  world.run("create /f 0644; write /f 0 6000000 1; checkpoint");
  const std::uint64_t before = *world.fixture.available_bytes();
  for (int i = 2; i < 11; ++i) world.run(fmt::format("pass 5000; write /f {} 1000000 {}; work", i % 3 * 1000000, i));
  EXPECT_GT(world.trees().automatic.blocks, 1000U);
  EXPECT_GE(*world.fixture.available_bytes() + (1u << 20), before);
  // One that is kept is charged, and one that is asked for holds what comes from now on.
  world.run(fmt::format("relabel {} mine; checkpoint", world.automatic().at(1)));
  EXPECT_LT(*world.fixture.available_bytes() + (2u << 20), before);
  EXPECT_TRUE(good(world.look()));
}

// A filesystem that is full of what automatic ones hold is not full.
TEST(Protection, a_snapshot_that_is_asked_for_takes_their_room) {
  ProtectedWorld world(protected_world({Mode::on, 600, 1}));
  world.run("create /f 0644; write /f 0 12000000 1; checkpoint");
  for (int i = 2; i < 14; ++i) world.run(fmt::format("pass 1000; write /f {} 1000000 {}; work", i % 12 * 1000000, i));
  ASSERT_GT(world.trees().automatic.blocks, 1000U);
  world.run("keep asked; write /f 0 12000000 20; checkpoint; work; work");
  EXPECT_GT(world.trees().tables.held_blocks, world.trees().automatic.blocks + 2800);
  EXPECT_TRUE(good(world.look()));
}

TEST(Protection, one_is_kept_only_where_there_is_room_for_what_it_holds) {
  ProtectedWorld world(protected_world({Mode::on, 600, 1}));
  world.run("create /f 0644; write /f 0 8000000 1; pass 1000; work; write /f 0 8000000 2; checkpoint");
  const std::string name = world.automatic().front();
  std::uint64_t files = 0;
  // Until what it holds would not fit any more, but is held.
  while (*world.fixture.available_bytes() > (7u << 20) && !world.automatic().empty() && world.automatic().front() == name) {
    world.run(fmt::format("create /n{0} 0644; append /n{0} 500000 {0}", files++));
  }
  const Status kept = world.fixture.snapshot({Kind::rename, name, "mine"});
  EXPECT_TRUE(kept.fails_with(Errc::no_space) || kept.fails_with(Errc::not_found)) << (kept.ok() ? "kept" : kept.error().message());
  EXPECT_TRUE(good(world.look()));
}

// Everything can be removed, with nothing left but what they hold.
TEST(Protection, deleting_works_on_a_full_filesystem) {
  ProtectedWorld world(protected_world({Mode::on, 600, 1}));
  const Filled filled = fill(world);
  for (std::uint64_t i = 0; i < filled.files; ++i) {
    world.clock.advance(300'000'000);
    ASSERT_TRUE(world.fixture.call([&](fs::Operation& op) { return world.fixture.fs().unlink(op, kRootIno, fmt::format("f{}", i)); }).ok())
        << i;
  }
  (void)world.fixture.call([&](fs::Operation& op) { return world.fixture.fs().unlink(op, kRootIno, fmt::format("f{}", filled.files)); });
  const Filled again = fill(world);
  EXPECT_GE(again.files + 1, filled.files) << "what was removed is in the way";
  ASSERT_TRUE(world.fixture.unmount().ok());
  EXPECT_TRUE(good(check_image(world.device)));
  ASSERT_TRUE(world.fixture.mount().ok());
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
