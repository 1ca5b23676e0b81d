// A mount where the tables of snapshots are damaged: it comes about, shows what is in use, and loses nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "check/checking.h"
#include "check/kept_trees.h"
#include "device/faults.h"
#include "fs/engine.h"
#include "repair/fsck_image.h"
#include "repair/kept_image.h"
#include "repair/node_surgery.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/pattern.h"
#include "tree/trees.h"

namespace varve::repair::test {
namespace {

using testing::HasSubstr;
using varve::test::FsFixture;
using varve::test::make_image;
using varve::test::ManualClock;
using varve::test::pattern_bytes;
using Change = snapshots::SnapshotChange;

std::vector<BlockAddr> table_nodes(io::MemDevice& device, bool leaves_only = false) {
  std::vector<BlockAddr> nodes;
  for (const auto& [at, owned] : owners_of(device))
    if (is_node(owned, format::TreeId::snapshots) && (!leaves_only || owned.owner.level == 0)) nodes.push_back(at);
  return nodes;
}

// The leaf where the items of snapshots stand, which a mount reads.
BlockAddr leaf_of_items(io::MemDevice& device) {
  for (const BlockAddr at : table_nodes(device, true)) {
    std::array<std::byte, kBlockSize> block;
    device.peek(at.v * kBlockSize, block);
    if (format::decode_node_header(block)->first.kind == format::ItemKind::snapshot) return at;
  }
  ADD_FAILURE() << "there is none";
  return {};
}

class Mounted {
 public:
  explicit Mounted(io::BlockDevice& device, bool read_only = false) : random_(9), fixture_(device, options(read_only)) {
    clock_.set_elapsed(9'000'000'000'000);
    const Status mounted = fixture_.mount();
    EXPECT_TRUE(mounted.ok()) << mounted.error().message();
  }
  FsFixture* operator->() { return &fixture_; }
  device::Faults& faults() { return fixture_.store().faults(); }

 private:
  fs::Options options(bool read_only) {
    fs::Options options = varve::test::test_options(clock_, random_);
    options.read_only = read_only;
    return options;
  }
  ManualClock clock_;
  SeededRandom random_;
  FsFixture fixture_;
};

Status acknowledged(Mounted& mounted, const std::string& path, std::uint64_t seed) {
  TRY(mounted->make(path, 0100644));
  const Ino ino = TRY(mounted->resolve(path));
  TRY(mounted->write(ino, 0, pattern_bytes(seed, 0, 30'000)));
  return mounted->call([&](fs::Operation& op) { return mounted->fs().fsync(op, ino); });
}

std::vector<std::byte> content(Mounted& mounted, const std::string& path) {
  const auto ino = mounted->resolve(path);
  if (!ino.ok()) return {};
  auto bytes = mounted->read(*ino, 0, 30'000);
  return bytes.ok() ? std::move(bytes).value() : std::vector<std::byte>{};
}

// Lets go of what snapshots hold, in files that all of them have.
void overwrite_much(Mounted& mounted) {
  for (unsigned i = 0; i < 30; ++i)
    if (const auto ino = mounted->resolve(fmt::format("/d2/file{}", i)); ino.ok())
      (void)mounted->write(*ino, 0, pattern_bytes(900 + i, 0, 5 * kBlockSize)).ok();
}

TEST(DamagedTables, EachMountShowsWhatIsInUse) {
  for (const bool unclean : {false, true}) {
    const auto image = populated_with_snapshots(unclean);
    const Seen expected = look_at(*image->snapshot());
    for (const BlockAddr at : table_nodes(*image)) {
      const auto copy = image->snapshot();
      flip_bit(*copy, at, 9999);
      for (const bool read_only : {true, false}) {
        const Seen now = look_at(*copy->snapshot(), {}, read_only);
        EXPECT_EQ(now.error, "") << at.v;
        EXPECT_EQ(now.paths, expected.paths);
        EXPECT_EQ(lost_of(expected, now), 0U);
      }
    }
  }
}

TEST(DamagedTables, WhoCannotReadThemWritesNothingAndSaysWhy) {
  for (const bool unclean : {false, true}) {
    const auto image = populated_with_snapshots(unclean);
    flip_bit(*image, leaf_of_items(*image), 9999);
    const auto before = image->snapshot();
    {
      Mounted mounted(*image);
      EXPECT_TRUE(mounted.faults().read_only());
      EXPECT_THAT(mounted.faults().reason(), HasSubstr("tables of snapshots"));
      EXPECT_THAT(mounted.faults().reason(), HasSubstr("fsck.varve -y"));
      EXPECT_EQ(mounted->fs().status().read_only_reason, mounted.faults().reason());
      EXPECT_EQ(acknowledged(mounted, "/new", 5).error().code(), Errc::read_only);
      EXPECT_EQ(mounted->snapshot({Change::Kind::create, "three", {}}).error().code(), Errc::read_only);
      EXPECT_FALSE(mounted->unmount().ok());
    }
    Mounted shown(*image, true);
    EXPECT_THAT(shown->fs().status().snapshots.damage, HasSubstr("block"));
    EXPECT_TRUE(shown->unmount().ok());
    EXPECT_EQ(first_difference(*image, *before), std::nullopt);
  }
}

// Only the rest of the tables is damaged, which a mount does not read: it goes on until a checkpoint needs it.
TEST(DamagedTables, WhatWasAcknowledgedOutlivesTheCheckpointThatFails) {
  for (const bool unclean : {false, true}) {
    const auto image = populated_with_snapshots(unclean);
    std::uint64_t written = 0, failed = 0;
    for (const BlockAddr at : table_nodes(*image, true)) {
      const auto copy = image->snapshot();
      flip_bit(*copy, at, 9999);
      bool is_there = false;
      {
        Mounted mounted(*copy);
        is_there = acknowledged(mounted, "/acked", 5).ok();
        written += is_there;
        overwrite_much(mounted);
        const Status settled = mounted->checkpoint();
        const Status removed = mounted->snapshot({Change::Kind::remove, "one", {}});
        const Status given = mounted->settle_deletions();
        if (!settled.ok() || !removed.ok() || !given.ok()) {
          ++failed;
          EXPECT_TRUE(mounted.faults().read_only());
          EXPECT_THAT(mounted.faults().reason(), HasSubstr("tables of snapshots"));
        }
        mounted->crash();
      }
      Mounted again(*copy);
      EXPECT_EQ(content(again, "/acked") == pattern_bytes(5, 0, 30'000), is_there) << at.v;
      again->crash();
      const Outcome done = repaired(*copy);
      EXPECT_EQ(errors_but_damage(done.after), 0U) << check::test::lines(done.after) << actions_of(done);
      Mounted after(*copy);
      EXPECT_EQ(content(after, "/acked") == pattern_bytes(5, 0, 30'000), is_there) << at.v;
      EXPECT_FALSE(after.faults().read_only());
    }
    EXPECT_GT(written, 0U);
    EXPECT_GT(failed, 0U);
  }
}

// --- what a repair makes of it ---------------------------------------------------------------------------------------------------------

// Lists and places are told from the rest: no snapshot is lost, and nothing is given up.
TEST(DamagedTables, ALeafWithoutTheItemsCostsNothing) {
  const auto image = populated_with_snapshots(false);
  const States before = states_of(*image);
  std::uint64_t tried = 0, with_names = 0;
  for (const BlockAddr at : table_nodes(*image, true)) {
    if (at == leaf_of_items(*image)) continue;
    ++tried;
    const auto copy = image->snapshot();
    flip_bit(*copy, at, 9999);
    const Outcome done = repaired(*copy);
    EXPECT_EQ(done.before.problems.count(check::Code::snapshot_tables_torn), 1U) << check::test::lines(done.before);
    with_names += check::test::lines(done.before).find("which blocks are held for ") != std::string::npos;
    EXPECT_TRUE(done.actions.is_safe()) << actions_of(done);
    EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
    const States now = states_of(*copy);
    ASSERT_EQ(now.snapshots.size(), 2U);
    for (const auto& [name, seen] : now.snapshots) EXPECT_EQ(lost_of(before.snapshots.at(name), seen), 0U) << name;
    EXPECT_EQ(lost_of(before.in_use, now.in_use), 0U);
    expect_whole_without_snapshots(*copy);
    if (testing::Test::HasFailure()) break;
  }
  EXPECT_GT(tried, 2U);
  EXPECT_GT(with_names, 0U);
}

// A few snapshots: all that tells of them stands in one block.
class SmallTables : public testing::Test {
 protected:
  SmallTables() : image(16U << 20) {
    EXPECT_TRUE(make_image(image, {.segment_blocks = 64}).ok());
    Mounted mounted(image);
    write(mounted, 0, 12, 1);
    keep(mounted, "a");
    write(mounted, 0, 4, 2);
    keep(mounted, "gone");
    write(mounted, 2, 6, 3);
    EXPECT_TRUE(mounted->snapshot({Change::Kind::remove, "gone", {}}).ok());
    EXPECT_TRUE(mounted->settle_deletions().ok());
    write(mounted, 2, 6, 4);
    keep(mounted, "b");
    write(mounted, 5, 9, 5);
    EXPECT_TRUE(mounted->checkpoint().ok());
    EXPECT_TRUE(mounted->unmount().ok());
  }
  static void keep(Mounted& mounted, const std::string& name) {
    EXPECT_TRUE(mounted->snapshot({Change::Kind::create, name, {}}).ok());
  }
  static void write(Mounted& mounted, unsigned first, unsigned end, std::uint64_t state) {
    for (unsigned i = first; i < end; ++i) {
      const std::string path = fmt::format("/f{}", i);
      if (!mounted->resolve(path).ok()) {
        EXPECT_TRUE(mounted->make(path, 0100644).ok());
      }
      EXPECT_TRUE(mounted->write(*mounted->resolve(path), 0, pattern_bytes(100 * state + i, 0, 5 * kBlockSize)).ok());
    }
  }
  void move_much() {
    Mounted mounted(image);
    for (std::uint64_t i = 0; i < 12; ++i) {
      EXPECT_TRUE(mounted->move(i).ok());
      EXPECT_TRUE(mounted->checkpoint().ok());
    }
    EXPECT_GT(mounted->store().trees().own_view().tables.places, 0U);
    EXPECT_TRUE(mounted->unmount().ok());
  }
  void expect_same(const States& before, std::size_t snapshots) {
    const States now = states_of(image);
    EXPECT_EQ(now.in_use.paths, before.in_use.paths);
    EXPECT_EQ(lost_of(before.in_use, now.in_use), 0U);
    EXPECT_EQ(now.snapshots.size(), snapshots);
    for (const auto& [name, seen] : now.snapshots) EXPECT_EQ(lost_of(before.snapshots.at(name), seen), 0U) << name;
  }
  // The leaves that checkpoints from this one on have written.
  void wipe_tables_since(Serial serial) {
    std::array<std::byte, kBlockSize> block;
    for (BlockAddr at{0}; at.v < image.geometry().blocks(); ++at) {
      image.peek(at.v * kBlockSize, block);
      const auto header = format::decode_node_header(block);
      if (header.ok() && header->tree == format::TreeId::snapshots && header->serial >= serial) wipe(image, at);
    }
  }

  io::MemDevice image;
};

// All of what is listed is looked at, again and again: what a hostile image lists has to have an end.
TEST(ListsOfDeadBlocks, AreTogetherNoLongerThanTheDevice) {
  format::Superblock super;
  super.device_blocks = 1000;
  super.serial = Serial{9};
  check::SnapshotTables tables;
  const auto take = [&](std::uint64_t holder, std::uint64_t length) {
    format::DeadPieceBuilder builder;
    EXPECT_TRUE(builder.add({BlockAddr{100}, length, {.ancient = true}}));
    const format::Bytes piece = builder.finish(Serial{9});
    return tables.take({format::dead_key(Serial{holder}, 1), piece}, super);
  };
  EXPECT_TRUE(take(5, 600).ok());
  EXPECT_TRUE(take(6, 600).fails_with(Errc::corrupt)) << "each block is listed once";
  EXPECT_TRUE(take(7, 400).ok());
  EXPECT_TRUE(take(8, 1).fails_with(Errc::corrupt));
  EXPECT_EQ(tables.dead.size(), 2U);
}

TEST_F(SmallTables, SnapshotsComeBackFromAnOlderCopyWhereAllOfThemIsThere) {
  for (const bool moved : {false, true}) {
    if (moved) move_much();
    const States before = states_of(image);
    ASSERT_EQ(before.snapshots.size(), 2U);
    for (const BlockAddr at : table_nodes(image)) wipe(image, at);
    EXPECT_EQ(repair(*image.snapshot(), fsck::recover, {.only_safe = true}).error().code(), Errc::needs_fsck);
    const Outcome done = repaired(image);
    EXPECT_THAT(check::test::lines(done.before), HasSubstr("2 of 2 snapshots"));
    EXPECT_EQ(done.actions.count(ActionCode::snapshot_found), 2U) << actions_of(done);
    EXPECT_EQ(done.actions.count(ActionCode::snapshot_items_lost), 0U) << actions_of(done);
    EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
    expect_same(before, 2);
  }
  expect_whole_without_snapshots(image);
}

TEST_F(SmallTables, OneWhoseBlocksHaveBeenGivenAwayDoesNotComeBack) {
  const States before = states_of(image);
  const auto items = [&] {
    Mounted mounted(image, true);
    return mounted->fs().snapshots().snapshots;
  }();
  ASSERT_EQ(items.size(), 2U);
  wipe_tables_since(Serial{items[1].serial});  // of b: nobody knows it any more
  const Outcome done = repaired(image);
  EXPECT_EQ(done.actions.count(ActionCode::snapshot_found), 1U) << actions_of(done);
  EXPECT_THAT(actions_of(done), HasSubstr("1 of 2 snapshots are given up; older copies name gone"));
  EXPECT_EQ(done.errors_left(), 0U) << check::test::lines(done.after);
  expect_same(before, 1);
  expect_whole_without_snapshots(image);
}

}  // namespace
}  // namespace varve::repair::test
