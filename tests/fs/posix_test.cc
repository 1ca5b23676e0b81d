// What POSIX and Linux ask of inodes: default ACLs, access times, immutable and append-only files, capabilities, handles.
#include <gtest/gtest.h>

#include <linux/fs.h>

#include "format/codec.h"
#include "fs/acl.h"
#include "support/mounted_test.h"

namespace varve::fs {
namespace {

struct AclEntry {
  std::uint16_t tag, bits;
  std::uint32_t id = ~0u;
};
constexpr std::uint16_t kOwner = 1, kUser = 2, kGroup = 4, kMask = 16, kOther = 32;

std::vector<std::byte> acl(std::initializer_list<AclEntry> entries) {
  std::vector<std::byte> value(4 + 8 * entries.size());
  format::Writer out(value);
  out.put<std::uint32_t>(2);
  for (const AclEntry& entry : entries) {
    out.put(entry.tag);
    out.put(entry.bits);
    out.put(entry.id);
  }
  return value;
}

class Posix : public test::MountedTest {
 protected:
  Posix() { fixture_.options().atime = Atime::relative; }

  Ino make(std::string_view path, std::uint32_t mode = S_IFREG | 0644) {
    auto made = fixture_.make(path, mode);
    EXPECT_TRUE(made.ok()) << path << ": " << made.error().message();
    return made.ok() ? made->ino : Ino{};
  }
  Status set_acl(Ino ino, std::string_view name, const std::vector<std::byte>& value) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().setxattr(op, ino, name, value, 0); });
  }
  std::vector<std::byte> xattr(Ino ino, std::string_view name) {
    auto value = fixture_.call([&](Operation& op) { return fixture_.fs().getxattr(op, ino, name); });
    return value.ok() ? *value : std::vector<std::byte>{};
  }
  Attr attr(Ino ino) { return *fixture_.getattr(ino); }
  Status change(Ino ino, const AttrChange& change) {
    auto changed = fixture_.call([&](Operation& op) { return fixture_.fs().setattr(op, ino, change); });
    return changed.ok() ? Status() : Status(changed.error());
  }
  void set_flags(Ino ino, std::uint32_t flags) {
    AttrChange wanted;
    wanted.flags = flags;
    ASSERT_TRUE(change(ino, wanted).ok());
  }
  void write(Ino ino, std::uint64_t offset, WriteFlags flags = {}) { ASSERT_TRUE(try_write(ino, offset, flags).ok()); }
  Status try_write(Ino ino, std::uint64_t offset, WriteFlags flags = {}) {
    const std::vector<std::byte> data(100, std::byte{'x'});
    auto written = fixture_.call([&](Operation& op) { return fixture_.fs().write(op, ino, offset, data, flags); });
    return written.ok() ? Status() : Status(written.error());
  }
  void advance(std::int64_t seconds) { clock_.advance(seconds * 1'000'000'000); }
};

// --- ACLs ----------------------------------------------------------------------------------------------------------------

TEST_F(Posix, a_default_acl_is_inherited) {
  const auto inherited = acl({{kOwner, 7}, {kUser, 5, 1234}, {kGroup, 5}, {kMask, 7}, {kOther, 4}});
  const Ino top = make("/d", S_IFDIR | 0755);
  ASSERT_TRUE(set_acl(top, kDefaultAcl, inherited).ok());
  EXPECT_EQ(attr(top).mode & 0777u, 0755u);
  const Ino file = make("/d/f", S_IFREG | 0640);
  EXPECT_EQ(attr(file).mode & 0777u, 0640u);
  EXPECT_EQ(xattr(file, kAccessAcl), acl({{kOwner, 6}, {kUser, 5, 1234}, {kGroup, 5}, {kMask, 4}, {kOther, 0}}));
  EXPECT_TRUE(xattr(file, kDefaultAcl).empty());
  const Ino below = make("/d/below", S_IFDIR | 0777);
  EXPECT_EQ(attr(below).mode & 0777u, 0774u);
  EXPECT_EQ(xattr(below, kAccessAcl), inherited);
  EXPECT_EQ(xattr(below, kDefaultAcl), inherited);
  const Ino fifo = make("/d/below/fifo", S_IFIFO | 0666);
  EXPECT_EQ(attr(fifo).mode & 0777u, 0664u);
  remount();
  EXPECT_EQ(xattr(below, kDefaultAcl), inherited);
  EXPECT_EQ(attr(make("/d/below/g", S_IFREG | 0600)).mode & 0777u, 0600u);
}

TEST_F(Posix, the_umask_counts_only_without_a_default_acl) {
  const Ino with = make("/with", S_IFDIR | 0755), without = make("/without", S_IFDIR | 0755);
  ASSERT_TRUE(set_acl(with, kDefaultAcl, acl({{kOwner, 7}, {kGroup, 6}, {kOther, 6}})).ok());
  const NewNode node{.mode = S_IFREG | 0666, .umask = 077, .symlink = {}};
  auto made_in = [&](Ino parent) {
    return *fixture_.call([&](Operation& op) { return fixture_.fs().make(op, parent, "f", node); });
  };
  const Attr file = made_in(with);
  EXPECT_EQ(file.mode & 0777u, 0666u);
  EXPECT_TRUE(xattr(file.ino, kAccessAcl).empty()) << "says no more than the mode";
  EXPECT_EQ(made_in(without).mode & 0777u, 0600u);
  auto unnamed = fixture_.call([&](Operation& op) { return fixture_.fs().make_unnamed(op, with, node); });
  EXPECT_EQ(unnamed->mode & 0777u, 0666u);
  fixture_.fs().forget(unnamed->ino, 1);
}

TEST_F(Posix, symlinks_inherit_nothing) {
  const Ino top = make("/d", S_IFDIR | 0755);
  ASSERT_TRUE(set_acl(top, kDefaultAcl, acl({{kOwner, 7}, {kUser, 7, 1}, {kGroup, 0}, {kMask, 7}, {kOther, 0}})).ok());
  auto link = fixture_.call([&](Operation& op) {
    return fixture_.fs().make(op, top, "l", {.mode = S_IFLNK | 0777, .symlink = "target"});
  });
  EXPECT_EQ(link->mode & 0777u, 0777u);
  EXPECT_TRUE(xattr(link->ino, kAccessAcl).empty());
}

TEST_F(Posix, removing_an_acl_that_is_not_there_is_fine) {
  const Ino file = make("/f");
  auto remove = [&](std::string_view name) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().removexattr(op, file, name); });
  };
  EXPECT_TRUE(remove(kAccessAcl).ok());
  EXPECT_TRUE(remove("user.x").fails_with(Errc::no_attribute));
}

TEST_F(Posix, a_broken_acl_is_refused) {
  const Ino top = make("/d", S_IFDIR | 0755);
  EXPECT_TRUE(set_acl(top, kDefaultAcl, std::vector<std::byte>(13)).fails_with(Errc::invalid));
  EXPECT_TRUE(set_acl(top, kAccessAcl, acl({{3, 7}})).fails_with(Errc::invalid));
}

// --- access times --------------------------------------------------------------------------------------------------------

TEST_F(Posix, relative_access_times_change_once_after_a_change_and_once_a_day) {
  const Ino file = make("/f");
  advance(1);
  write(file, 0);
  const auto read = [&] {
    advance(1);
    ASSERT_TRUE(fixture_.read(file, 0, 10).ok());
  };
  read();
  const Timestamp first = attr(file).atime;
  EXPECT_EQ(first, clock_.now());
  EXPECT_LT(attr(file).mtime, first);
  EXPECT_LT(attr(file).ctime, first) << "reading is no change";
  read();
  EXPECT_EQ(attr(file).atime, first);
  write(file, 0);
  read();
  EXPECT_EQ(attr(file).atime, clock_.now());
  advance(25 * 60 * 60);
  read();
  EXPECT_EQ(attr(file).atime, clock_.now());
  const Timestamp last = attr(file).atime;
  remount();
  EXPECT_EQ(attr(file).atime, last);
}

TEST_F(Posix, access_times_of_directories_and_symlinks) {
  const Ino top = make("/d", S_IFDIR | 0755);
  auto link = fixture_.call([&](Operation& op) {
    return fixture_.fs().make(op, top, "l", {.mode = S_IFLNK | 0777, .symlink = "target"});
  });
  advance(1);
  ASSERT_TRUE(fixture_.list(top).ok());
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().readlink(op, link->ino); }).ok());
  EXPECT_EQ(attr(top).atime, clock_.now());
  EXPECT_EQ(attr(link->ino).atime, clock_.now());
}

TEST_F(Posix, no_access_times_where_they_are_not_wanted) {
  const Ino file = make("/f");
  write(file, 0);
  set_flags(file, FS_NOATIME_FL);
  const Timestamp before = attr(file).atime;
  advance(1);
  ASSERT_TRUE(fixture_.read(file, 0, 10).ok());
  EXPECT_EQ(attr(file).atime, before);
}

// --- flags ---------------------------------------------------------------------------------------------------------------

TEST_F(Posix, an_immutable_file_stays_as_it_is) {
  const Ino file = make("/f");
  write(file, 0);
  set_flags(file, FS_IMMUTABLE_FL);
  AttrChange mode, size, time;
  mode.mode = 0600;
  size.size = 10;
  time.atime = clock_.now();
  for (const AttrChange& refused : {mode, size, time}) EXPECT_TRUE(change(file, refused).fails_with(Errc::not_permitted));
  EXPECT_TRUE(try_write(file, 1000).fails_with(Errc::not_permitted));
  EXPECT_TRUE(try_write(file, 0, {.from_cache = true}).fails_with(Errc::not_permitted));
  auto refused = [&](auto call) { return fixture_.call(call).fails_with(Errc::not_permitted); };
  Filesystem& fs = fixture_.fs();
  EXPECT_TRUE(refused([&](Operation& op) { return fs.unlink(op, kRootIno, "f"); }));
  EXPECT_TRUE(refused([&](Operation& op) { return fs.link(op, file, kRootIno, "g"); }));
  EXPECT_TRUE(refused([&](Operation& op) { return fs.rename(op, kRootIno, "f", kRootIno, "g", 0); }));
  EXPECT_TRUE(refused([&](Operation& op) { return fs.fallocate(op, file, FallocateMode::allocate, 0, 10000); }));
  EXPECT_TRUE(refused([&](Operation& op) { return fs.fallocate(op, file, FallocateMode::punch_hole, 0, 50); }));
  EXPECT_TRUE(refused([&](Operation& op) { return fs.removexattr(op, file, "user.x"); }));
  EXPECT_TRUE(set_acl(file, "user.x", {}).fails_with(Errc::not_permitted));
  make("/g");
  EXPECT_TRUE(refused([&](Operation& op) { return fs.rename(op, kRootIno, "g", kRootIno, "f", 0); }));
  set_flags(file, 0);
  write(file, 0);
}

TEST_F(Posix, an_append_only_file_grows) {
  const Ino file = make("/f");
  write(file, 0);
  set_flags(file, FS_APPEND_FL);
  write(file, 100);
  EXPECT_TRUE(try_write(file, 199).fails_with(Errc::not_permitted));
  AttrChange size;
  size.size = 0;
  EXPECT_TRUE(change(file, size).fails_with(Errc::not_permitted));
  AttrChange touched, dated;
  touched.atime = touched.mtime = clock_.now();
  EXPECT_TRUE(change(file, touched).ok());
  dated.atime = dated.mtime = Timestamp{1, 0};
  dated.chosen_time = true;
  EXPECT_TRUE(change(file, dated).fails_with(Errc::not_permitted));
  auto unlinked = fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, kRootIno, "f"); });
  EXPECT_TRUE(unlinked.fails_with(Errc::not_permitted));
}

// The kernel cuts a long write into pieces, which come in any order.
TEST_F(Posix, an_append_only_file_grows_by_pieces_in_any_order) {
  const Ino file = make("/pieces");
  set_flags(file, FS_APPEND_FL);
  const auto piece = [&](std::uint64_t offset, WriteFlags flags) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().write(op, file, offset, std::vector<std::byte>(kBlockSize), flags); });
  };
  EXPECT_TRUE(piece(kBlockSize, {.append = true}).ok());
  EXPECT_TRUE(piece(0, {.append = true}).ok());
  EXPECT_TRUE(piece(0, {}).fails_with(Errc::not_permitted));
}

TEST_F(Posix, immutable_and_append_only_directories) {
  const Ino top = make("/d", S_IFDIR | 0755);
  make("/d/f");
  set_flags(top, FS_APPEND_FL);
  make("/d/g");
  auto unlink = [&] { return fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, top, "f"); }); };
  EXPECT_TRUE(unlink().fails_with(Errc::not_permitted));
  set_flags(top, FS_IMMUTABLE_FL);
  EXPECT_TRUE(unlink().fails_with(Errc::not_permitted));
  EXPECT_TRUE(fixture_.make("/d/h", S_IFREG | 0644).fails_with(Errc::not_permitted));
  EXPECT_TRUE(fixture_.make("/d/f", S_IFREG | 0644).fails_with(Errc::exists));
  set_flags(top, 0);
  EXPECT_TRUE(unlink().ok());
}

// As `touch -m` asks for it. What the kernel has dated in its cache before the flag was set looks the same, but names an open file.
TEST_F(Posix, only_the_kernel_dates_what_must_not_change) {
  const Ino file = make("/f"), top = make("/d", S_IFDIR | 0755);
  for (const std::uint32_t flag : {FS_IMMUTABLE_FL, FS_APPEND_FL}) {
    write(file, 0);
    const Timestamp before = attr(file).mtime;
    advance(10);
    const Timestamp of_cache = clock_.now();
    advance(10);
    set_flags(file, flag);
    set_flags(top, flag);
    advance(10);
    AttrChange touched, dated, cached;
    touched.mtime = touched.ctime = clock_.now();
    dated.mtime = Timestamp{before.seconds - 1, 0};
    cached.mtime = cached.ctime = of_cache;
    cached.of_open_file = true;
    for (const AttrChange& refused : {touched, dated})
      for (const Ino ino : {file, top}) EXPECT_TRUE(change(ino, refused).fails_with(Errc::not_permitted)) << ino.v << " flag " << flag;
    EXPECT_TRUE(change(top, cached).fails_with(Errc::not_permitted)) << "the kernel has no times of a directory to tell";
    EXPECT_EQ(attr(file).mtime, before);
    EXPECT_TRUE(change(file, cached).ok()) << "flag " << flag;
    EXPECT_EQ(attr(file).mtime, of_cache);
    cached.of_open_file = false;
    cached.ctime = clock_.now();
    EXPECT_TRUE(change(file, cached).ok()) << "what it knows already";
    for (const Ino ino : {file, top}) set_flags(ino, 0);
    EXPECT_TRUE(change(file, touched).ok());
    EXPECT_TRUE(change(top, touched).ok());
  }
}

TEST_F(Posix, a_directory_hands_its_flags_down) {
  const Ino top = make("/d", S_IFDIR | 0755);
  set_flags(top, FS_NODUMP_FL | FS_NOATIME_FL | FS_APPEND_FL | FS_SYNC_FL);
  constexpr std::uint32_t kInherited = FS_NODUMP_FL | FS_NOATIME_FL;
  const Ino file = make("/d/f"), below = make("/d/below", S_IFDIR | 0755);
  EXPECT_EQ(attr(file).flags, kInherited);
  EXPECT_EQ(attr(below).flags, kInherited);
  EXPECT_EQ(attr(make("/d/below/g")).flags, kInherited);
  EXPECT_EQ(attr(make("/d/fifo", S_IFIFO | 0644)).flags, 0u);
  auto link = fixture_.call([&](Operation& op) {
    return fixture_.fs().make(op, top, "l", {.mode = S_IFLNK | 0777, .symlink = "target"});
  });
  EXPECT_EQ(link->flags, 0u);
  auto unnamed = fixture_.call([&](Operation& op) {
    return fixture_.fs().make_unnamed(op, top, {.mode = S_IFREG | 0600, .symlink = {}});
  });
  EXPECT_EQ(unnamed->flags, kInherited);
  fixture_.fs().forget(unnamed->ino, 1);
  remount();
  EXPECT_EQ(attr(file).flags, kInherited);
  set_flags(top, 0);
  EXPECT_EQ(attr(make("/d/later")).flags, 0u);
  EXPECT_EQ(attr(file).flags, kInherited) << "its own by now";
}

TEST_F(Posix, a_whiteout_has_no_flags) {
  const Ino top = make("/d", S_IFDIR | 0755);
  set_flags(top, FS_NOATIME_FL);
  make("/d/f");
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().rename(op, top, "f", top, "g", kRenameWhiteout); }).ok());
  EXPECT_EQ(fixture_.lookup(top, "f")->flags, 0u);
  EXPECT_EQ(fixture_.lookup(top, "g")->flags, std::uint32_t{FS_NOATIME_FL});
}

// Told by the superblock, so that a mount knows it before it opens the first file.
TEST_F(Posix, a_filesystem_remembers_that_it_has_had_protected_files) {
  const Ino file = make("/f");
  for (const std::uint32_t flags : {FS_NOATIME_FL, FS_NODUMP_FL}) set_flags(file, flags);
  ASSERT_TRUE(fixture_.unmount().ok());
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_FALSE(fixture_.fs().may_have_protected_files());
  set_flags(file, FS_APPEND_FL);
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().fsync(op, file); }).ok());
  fixture_.crash();
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_TRUE(fixture_.fs().may_have_protected_files()) << "what a recovery has replayed counts";
  set_flags(file, 0);
  ASSERT_TRUE(fixture_.unmount().ok());
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_TRUE(fixture_.fs().may_have_protected_files()) << "for good: nobody counts them";
}

// As programs do that have allocated more than they needed.
TEST_F(Posix, truncating_to_the_same_size_frees_what_was_allocated_behind_it) {
  for (const std::uint64_t size : {std::uint64_t{0}, std::uint64_t{5000}}) {
    const Ino file = make(size ? "/some" : "/none");
    if (size) write(file, size - 100);
    auto allocated = fixture_.call([&](Operation& op) {
      return fixture_.fs().fallocate(op, file, FallocateMode::allocate_keep_size, 0, 10 << 20);
    });
    ASSERT_TRUE(allocated.ok());
    EXPECT_GE(attr(file).blocks, 2560U);
    AttrChange same;
    same.size = size;
    ASSERT_TRUE(change(file, same).ok());
    EXPECT_LE(attr(file).blocks, 2U);
    remount();
    EXPECT_LE(attr(file).blocks, 2U);
    EXPECT_EQ(attr(file).size, size);
  }
}

// --- the rest ------------------------------------------------------------------------------------------------------------

TEST_F(Posix, a_capability_does_not_outlive_a_change) {
  const Ino file = make("/f", S_IFREG | 0755);
  write(file, 0);
  const std::vector<std::byte> capability(20, std::byte{1});
  AttrChange size, owner, mode;
  size.size = 10;
  owner.uid = 5;
  owner.drop_privileges = true;
  mode.mode = 0711;
  for (const AttrChange& each : {size, owner}) {
    ASSERT_TRUE(set_acl(file, "security.capability", capability).ok());
    ASSERT_TRUE(change(file, each).ok());
    EXPECT_TRUE(xattr(file, "security.capability").empty());
  }
  ASSERT_TRUE(set_acl(file, "security.capability", capability).ok());
  ASSERT_TRUE(change(file, mode).ok());
  EXPECT_FALSE(xattr(file, "security.capability").empty());
  write(file, 0, {.drop_privileges = true});
  EXPECT_TRUE(xattr(file, "security.capability").empty());
}

TEST_F(Posix, a_new_owner_takes_setuid_away_but_from_directories) {
  AttrChange owner;
  owner.uid = 5;
  owner.drop_privileges = true;
  for (const std::uint32_t type : {S_IFREG, S_IFIFO, S_IFCHR, S_IFSOCK, S_IFDIR}) {
    const Ino ino = make("/" + std::to_string(type), type | 06755);
    ASSERT_TRUE(change(ino, owner).ok());
    EXPECT_EQ(attr(ino).mode & 07777u, type == S_IFDIR ? 06755u : 0755u) << type;
  }
}

TEST_F(Posix, truncation_by_somebody_else_takes_setgid_away) {
  AttrChange shorter;
  shorter.size = 0;
  shorter.drop_privileges = true;
  const auto mode_after = [&](const Caller& caller) {
    const Ino ino = make("/of" + std::to_string(caller.uid) + "," + std::to_string(caller.gid), S_IFREG | 02666);
    Operation operation(fixture_.fs().operations(), caller);
    EXPECT_TRUE(block_on(operation, [&] { return fixture_.fs().setattr(operation, ino, shorter); }).ok());
    return attr(ino).mode & 07777u;
  };
  EXPECT_EQ(mode_after({.uid = 1234, .gid = 1234}), 0666U);
  EXPECT_EQ(mode_after({.uid = 1234, .gid = 0}), 02666U) << "one of the group";
  EXPECT_EQ(mode_after({.uid = 0, .gid = 1234}), 02666U);
}

TEST_F(Posix, handles_of_files_are_looked_up_by_dot) {
  const Ino file = make("/f");
  remount();
  auto found = fixture_.lookup(file, ".");
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->ino, file);
  EXPECT_TRUE(fixture_.lookup(file, "x").fails_with(Errc::not_directory));
  EXPECT_TRUE(fixture_.lookup(Ino{file.v + 100}, ".").fails_with(Errc::stale));
  auto unnamed = fixture_.call([&](Operation& op) {
    return fixture_.fs().make_unnamed(op, kRootIno, {.mode = S_IFREG | 0600, .symlink = {}});
  });
  EXPECT_TRUE(fixture_.lookup(unnamed->ino, ".").fails_with(Errc::stale)) << "about to go";
  fixture_.fs().forget(unnamed->ino, 1);
}

TEST_F(Posix, a_whiteout_stays_where_a_name_was) {
  const Ino file = make("/f");
  auto renamed = fixture_.call([&](Operation& op) {
    return fixture_.fs().rename(op, kRootIno, "f", kRootIno, "g", kRenameWhiteout);
  });
  ASSERT_TRUE(renamed.ok()) << renamed.error().message();
  EXPECT_EQ(fixture_.lookup(kRootIno, "g")->ino, file);
  const Attr whiteout = *fixture_.lookup(kRootIno, "f");
  EXPECT_TRUE(S_ISCHR(whiteout.mode));
  EXPECT_EQ(whiteout.rdev, 0u);
  EXPECT_EQ(whiteout.nlink, 1u);
}

}  // namespace
}  // namespace varve::fs
