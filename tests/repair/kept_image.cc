#include "repair/kept_image.h"

#include <gtest/gtest.h>

#include "check/checking.h"
#include "check/inode_pass.h"
#include "check/kept_trees.h"
#include "check/map_walk.h"
#include "fs/engine.h"
#include "fsck/recovery.h"
#include "repair/silence.h"
#include "snapshots/snapshot_change.h"
#include "store/store.h"
#include "support/pattern.h"
#include "tree/trees.h"

namespace varve::repair::test {

using check::Code;
using varve::test::FsFixture;
using varve::test::ManualClock;
using varve::test::pattern_bytes;
using Change = snapshots::SnapshotChange;

Owners owners_of(io::MemDevice& device) {
  Silence silence(device, check::check(device, {})->super);
  const format::Superblock& super = silence.report.super;
  check::Claims claims(super);
  claims.keep_tags();
  check::KeptTrees kept(silence.context);
  Owners owners;
  claims.set_recorder([&](BlockAddr address, const format::ReverseEntry& owner) {
    owners[address] = {owner, kept.walked() ? kept.walked()->name : ""};
  });
  check::ExtentClaimer claimer(claims);
  check::TreeWalk(silence.context, claims, claimer, check::newest_inode_file(super)).run();
  for (const auto& [tree, root, shape] :
       {std::tuple(format::TreeId::reverse_map, super.reverse_map, format::reverse_map_shape(super.device_blocks)),
        {format::TreeId::free_map, super.free_map, format::free_map_shape(super.segments, super.segment_blocks)}})
    check::MapWalk(silence.context, tree, root, shape).claim_nodes(claims);
  kept.claim(claims, nullptr);
  return owners;
}

bool is_node(const Owned& owned, format::TreeId tree) { return owned.owner.owner == format::Owner::node && owned.owner.tree == tree; }

States states_of(const io::MemDevice& device) {
  const auto copy = device.snapshot();
  States states;
  for (const std::string& name : snapshot_names(*copy)) states.snapshots[name] = look_at(*copy, name);
  states.in_use = look_at(*copy);
  return states;
}

std::uint64_t lost_of(const Seen& expected, const Seen& found) {
  std::uint64_t lost = 0;
  for (const auto& [path, ino] : expected.paths) {
    const auto at = found.paths.find(path);
    if (at == found.paths.end() || !found.inodes.contains(at->second)) {
      ++lost;
      continue;
    }
    const SeenFile &was = expected.inodes.at(ino), &is = found.inodes.at(at->second);
    if (was == is) continue;
    ++lost;
    for (std::size_t i = 0; i < is.blocks.size() && i < was.blocks.size(); ++i)
      EXPECT_TRUE(is.blocks[i].empty() || is.blocks[i] == was.blocks[i]) << path << ": something else stands there";
  }
  return lost;
}

Outcome repaired(io::BlockDevice& device, const RepairOptions& options) {
  auto done = repair(device, fsck::recover, options);
  EXPECT_TRUE(done.ok()) << done.error().message();
  return done.ok() ? std::move(done).value() : Outcome{};
}

std::string actions_of(const Outcome& outcome) {
  std::string text;
  for (const Action& action : outcome.actions.kept()) text += to_line(action) + "\n";
  return text;
}

std::uint64_t errors_but_damage(const check::Report& report) {
  return report.errors() - report.problems.count(Code::data_damaged) - report.problems.count(Code::snapshot_damaged);
}

void expect_whole_without_snapshots(io::MemDevice& device) {
  ManualClock clock;
  clock.set_elapsed(9'000'000'000'000);
  SeededRandom random(9);
  FsFixture fixture(device, varve::test::test_options(clock, random));
  ASSERT_TRUE(fixture.mount().ok());
  ASSERT_TRUE(fixture.make("/new", 0100644).ok());
  ASSERT_TRUE(fixture.write(*fixture.resolve("/new"), 0, pattern_bytes(77, 0, 100'000)).ok());
  ASSERT_TRUE(fixture.checkpoint().ok());
  for (const auto& one : fixture.fs().snapshots().snapshots)
    ASSERT_TRUE(fixture.snapshot({Change::Kind::remove, one.name, {}}).ok()) << one.name;
  ASSERT_TRUE(fixture.settle_deletions().ok());
  EXPECT_EQ(fixture.store().trees().own_view().tables, format::SnapshotTables());
  ASSERT_TRUE(fixture.unmount().ok());
  const auto report = check::check(device, {});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->errors(), 0U) << check::test::lines(*report);
}

}  // namespace varve::repair::test
