// Blocks that automatic snapshots hold are in nobody's way: they count as room, and go before anybody is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "fs/engine.h"
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
  filled.waits = fixture.fs().status().waits[static_cast<std::size_t>(operation::WaitCause::space)].times;
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

}  // namespace
}  // namespace varve::test
