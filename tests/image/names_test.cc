#include "image/names.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "format/item.h"
#include "format/snapshot.h"

namespace varve::image {
namespace {

using format::Bytes;
using format::ItemKind;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

struct Leaves : ::testing::Test {
  const NameCipher cipher{{1, 2}};
  Names names{cipher};

  void change(ItemKind kind, std::uint64_t offset, std::span<std::byte> value) { names.change({Ino{7}, kind, offset}, value); }
};

Bytes blob() {
  const std::vector<format::Xattr> set{{"security.capability", bytes_of("\1\0\0\2kept")},
                                       {"system.posix_acl_access", bytes_of("an acl")},
                                       {"trusted.long", Bytes(3000, std::byte{'s'})},
                                       {"user.empty", {}},
                                       {"user.note", bytes_of("secret")}};
  Bytes out;
  format::encode_xattrs(set, out);
  return out;
}

void expect_no_secrets(const Bytes& changed) {
  const auto set = format::decode_xattrs(changed);
  ASSERT_TRUE(set.ok());
  ASSERT_EQ(set->size(), 5U);
  EXPECT_EQ((*set)[0].value, bytes_of("\1\0\0\2kept"));
  EXPECT_EQ((*set)[1].value, bytes_of("an acl"));
  EXPECT_EQ((*set)[2].value, Bytes(3000));
  EXPECT_EQ((*set)[4].name, "user.note");
  EXPECT_EQ((*set)[4].value, Bytes(6));
}

TEST_F(Leaves, lose_values_of_attributes_in_pieces_of_any_length) {
  for (const std::size_t length : {1U, 2U, 7U, 100U, 1040U, 5000U}) {
    Bytes value = blob();
    for (std::size_t at = 0; at < value.size(); at += length)
      change(ItemKind::xattr, at / length, std::span(value).subspan(at, std::min(length, value.size() - at)));
    expect_no_secrets(value);
  }
}

// A later tree begins in the middle of a set: what is before has been copied with another tree.
TEST_F(Leaves, go_on_behind_one_that_was_done_before) {
  Bytes value = blob();
  const auto first = std::span(value).first(1040), rest = std::span(value).subspan(1040);
  const Bytes untouched(rest.begin(), rest.end());
  change(ItemKind::xattr, 0, first);
  names.leave(BlockAddr{10});
  change(ItemKind::xattr, 1, rest);
  names.leave(BlockAddr{11});
  Bytes other = untouched;
  names.pass_by(BlockAddr{11});
  names.pass_by(BlockAddr{10});
  change(ItemKind::xattr, 1, other);
  EXPECT_TRUE(std::ranges::equal(other, rest));
}

TEST_F(Leaves, get_other_names) {
  Bytes entry;
  format::encode_dirent({Ino{300}, 8, "letter.txt"}, entry);
  change(ItemKind::dirent, 5, entry);
  const auto changed = format::decode_dirent(entry);
  ASSERT_TRUE(changed.ok());
  EXPECT_EQ(changed->ino, Ino{300});
  EXPECT_NE(changed->name, "letter.txt");
  Bytes target = bytes_of("../letter.txt");
  change(ItemKind::symlink, 0, target);
  EXPECT_EQ(target, bytes_of("../" + std::string(changed->name))) << "a link leads where it led";
}

TEST_F(Leaves, get_other_names_of_snapshots_but_for_those_that_are_times) {
  const auto changed = [&](const std::string& name, bool automatic) {
    format::SnapshotItem item;
    item.serial = Serial{9};
    item.automatic = automatic;
    item.name = name;
    item.inode_file = {BlockAddr{100}, 7, 0};
    Bytes value;
    format::encode_snapshot(item, value);
    names.change(format::snapshot_key(item.serial), value);
    const auto found = format::decode_snapshot(format::snapshot_key(item.serial), value);
    EXPECT_TRUE(found.ok());
    EXPECT_EQ(found->automatic, automatic);
    return found->name;
  };
  EXPECT_NE(changed("before the merger", false), "before the merger");
  EXPECT_TRUE(format::check_snapshot_name(changed("before the merger", false)).ok());
  EXPECT_EQ(changed("auto-2026-11-26T02:30:00Z", true), "auto-2026-11-26T02:30:00Z");
}

TEST_F(Leaves, keep_what_is_no_name) {
  Bytes extent(30, std::byte{'x'});
  change(ItemKind::extent, 0, extent);
  EXPECT_EQ(extent, Bytes(30, std::byte{'x'}));
}

}  // namespace
}  // namespace varve::image
