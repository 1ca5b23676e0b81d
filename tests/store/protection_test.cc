// What automatic snapshots hold alone, counted beside snapshots that were asked for; which of them are too old; how they stand on the disk.
#include "checkpoint/protection.h"

#include <gtest/gtest.h>

#include <string>

#include "snapshots/snapshots.h"

namespace varve::checkpoint {
namespace {

using Mode = snapshots::ProtectionSettings::Mode;

format::SnapshotItem item(std::uint64_t serial, bool automatic, std::uint64_t dead = 0, std::uint64_t alone = 0) {
  format::SnapshotItem made;
  made.serial = Serial{serial};
  made.clock = serial * 100;
  made.automatic = automatic;
  made.made = {1'700'000'000 + static_cast<std::int64_t>(serial), 0};
  made.name = automatic ? format::automatic_name(made.made) : "asked";
  made.inode_file = {BlockAddr{1000 + serial}, 7, 0};
  made.dead = dead;
  made.alone = alone;
  return made;
}

void list_blocks(snapshots::SnapshotList& list, std::uint64_t holder, std::uint64_t born, std::uint64_t blocks) {
  format::SnapshotItem& held_by = *list.find(Serial{holder});
  held_by.dead += blocks;
  list.note_listed(held_by, {.when = born}, blocks);
}

TEST(LooseBlocks, are_all_where_none_was_asked_for) {
  snapshots::SnapshotList list;
  for (const std::uint64_t serial : {1, 2, 3}) list.add(item(serial, true));
  list_blocks(list, 1, 50, 10);
  list_blocks(list, 3, 50, 20);
  EXPECT_EQ(list.loose().blocks, 30U);
  EXPECT_EQ(list.loose().standing, 30U);
  std::vector<Serial> changed;
  list.remove(*list.find(Serial{1}), changed);
  EXPECT_EQ(list.loose().blocks, 30U);
  EXPECT_EQ(list.loose().standing, 20U) << "what is being given back is not to be given up again";
}

TEST(LooseBlocks, are_not_what_one_that_was_asked_for_has_as_well) {
  snapshots::SnapshotList list;
  list.add(item(1, true));
  list.add(item(2, false));
  list.add(item(3, true));
  list_blocks(list, 1, 50, 5);    // older than what was asked for, and gone before it: only the automatic one's
  list_blocks(list, 3, 150, 10);  // in both
  list_blocks(list, 3, 250, 20);
  EXPECT_EQ(list.loose().blocks, 25U);
  EXPECT_EQ(list.loose().most, 35U);
  list.note_unlisted(*list.find(Serial{3}), {.when = 150}, 4);
  list.find(Serial{3})->dead -= 4;
  EXPECT_EQ(list.loose_blocks(*list.find(Serial{3})), 20U);
  std::vector<Serial> changed;
  list.remove(*list.find(Serial{2}), changed);
  EXPECT_EQ(list.loose().blocks, 31U) << "nobody else has them any more";
}

TEST(LooseBlocks, are_counted_from_below_where_nothing_is_known) {
  snapshots::SnapshotList list;
  list.add(item(1, true, 10, 10));
  list.add(item(2, true, 30, 5));
  list.make_permanent(*list.find(Serial{1}));
  EXPECT_EQ(list.loose().blocks, 5U) << "of the others it may have each";
  EXPECT_EQ(list.loose().most, 30U);
  const snapshots::SnapshotList mounted({item(1, false, 10, 10), item(2, true, 30, 5)});
  EXPECT_EQ(mounted.loose().blocks, 5U);
}

TEST(Snapshots, know_exactly_what_the_oldest_automatic_one_has_alone) {
  snapshots::SnapshotList list;
  list.add(item(1, false));
  list.add(item(2, true));
  list.add(item(3, true));
  list_blocks(list, 3, 150, 7);  // 2 and 3 have them
  list_blocks(list, 3, 50, 9);   // all of them have these
  std::vector<Serial> changed;
  list.remove(*list.find(Serial{2}), changed);
  EXPECT_EQ(list.find(Serial{3})->alone, 7U);
  EXPECT_EQ(changed, (std::vector{Serial{2}, Serial{3}}));
}

TEST(AutomaticSnapshots, grow_old) {
  const auto is_old_after = [](std::int64_t seconds, Mode mode) { return is_outdated(seconds, {mode, 600, 30}); };
  EXPECT_FALSE(is_old_after(600, Mode::on));
  EXPECT_TRUE(is_old_after(601, Mode::on));
  EXPECT_TRUE(is_old_after(0, Mode::off));
  EXPECT_FALSE(is_old_after(1'000'000, Mode::leave));
  EXPECT_FALSE(is_old_after(3600, Mode::fade));
  EXPECT_TRUE(is_old_after(3601, Mode::fade));
  EXPECT_FALSE(is_outdated(7200, {Mode::fade, 7200, 30})) << "they reached back so far when they were found";
  EXPECT_TRUE(is_outdated(7201, {Mode::fade, 7200, 30}));
}

TEST(AutomaticSnapshots, are_neither_too_many_nor_none) {
  EXPECT_EQ((snapshots::ProtectionSettings{Mode::on, 3600, 30}.interval_s()), 30U);
  EXPECT_EQ((snapshots::ProtectionSettings{Mode::on, 10, 30}.interval_s()), 10U);
  EXPECT_EQ((snapshots::ProtectionSettings{Mode::on, 864'000, 30}.interval_s()), 87U);
  EXPECT_FALSE(snapshots::with_window({}, "off")->is_on());
  EXPECT_TRUE(snapshots::with_window({}, "1h")->is_on());
  EXPECT_TRUE(snapshots::with_window({}, "x").fails_with(Errc::invalid));
  EXPECT_TRUE(snapshots::with_interval({}, "0").fails_with(Errc::invalid));
}

TEST(AutomaticSnapshots, are_marked_so_that_an_older_reader_takes_them_for_others) {
  format::SnapshotItem written = item(5, true, 3, 2);
  written.next_piece = 17;
  EXPECT_EQ(written.name, "auto-2023-11-14T22:13:25Z");
  format::Bytes bytes;
  format::encode_snapshot(written, bytes);
  EXPECT_EQ(std::to_integer<int>(bytes[0]), 0) << "a flag that it does not know is damage to it";
  const auto read = format::decode_snapshot(format::snapshot_key(written.serial), bytes);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, written);
  // With another name, which an older version has given it, it is somebody's.
  const std::string name = "auto-";
  for (std::size_t i = 0; i < name.size(); ++i) bytes[bytes.size() - written.name.size() + i] = std::byte{'x'};
  const auto renamed = format::decode_snapshot(format::snapshot_key(written.serial), bytes);
  ASSERT_TRUE(renamed.ok());
  EXPECT_FALSE(renamed->automatic);
  EXPECT_EQ(renamed->next_piece, 17U);
}

}  // namespace
}  // namespace varve::checkpoint
