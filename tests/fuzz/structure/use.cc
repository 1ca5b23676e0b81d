#include "fuzz/structure/use.h"

#include <sys/stat.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

#include "fs/engine.h"
#include "scrub/walk.h"
#include "support/pattern.h"

namespace varve::fuzz {

namespace {

constexpr std::size_t kMostFiles = 400;
constexpr unsigned kMostDepth = 10;
constexpr std::size_t kReadBytes = 40960;

}  // namespace

template <class T>
void Use::want(const char* what, Ino ino, const Result<T>& result, std::initializer_list<Errc> allowed) {
  if (!strict_ || result.ok() || !broken_.empty()) return;
  const Errc code = result.error().code();
  if (std::ranges::find(allowed, code) != allowed.end()) return;
  if (damage_ && (code == Errc::io || code == Errc::corrupt)) return;
  broken_ = fmt::format("{} of inode {}: {}", what, ino, result.error().message());
}

// Full, immutable, or at one of the limits that the format has.
template <class T>
void Use::want_change(const char* what, Ino ino, const Result<T>& result) {
  want(what, ino, result,
       {Errc::no_space, Errc::not_permitted, Errc::file_too_big, Errc::too_many_links, Errc::out_of_range, Errc::argument_too_big});
}

void Use::all(bool snapshots) {
  walk(kRootIno, 0);
  if (fixture_.fs().read_only()) return;
  make_names();
  want_change("sync", kRootIno, fixture_.call([&](fs::Operation& op) { return fixture_.fs().sync(op); }));
  want_change("checkpoint", kRootIno, fixture_.checkpoint());
  if (snapshots || !fixture_.fs().snapshots().snapshots.empty()) use_snapshots();
}

void Use::of_one_state() {
  changes_ = false;
  seen_.clear();
  walk(kRootIno, 0);
}

void Use::walk(Ino directory, unsigned depth) {
  const auto entries = fixture_.list(directory);
  want("readdir", directory, entries);
  if (!entries.ok()) return;
  for (const test::ListedEntry& entry : *entries) {
    if (entry.name == "." || entry.name == "..") continue;
    if (seen_.size() > kMostFiles || !broken_.empty()) return;
    look(directory, entry, depth);
  }
}

void Use::look(Ino directory, const test::ListedEntry& entry, unsigned depth) {
  const auto attr = fixture_.lookup(directory, entry.name);
  // fsck does not look at names in the trees of snapshots: after a repair with another hash key nobody finds them there.
  if (changes_) want("lookup", entry.ino, attr);
  if (!attr.ok()) return;
  if (strict_ && attr->ino != entry.ino) broken_ = fmt::format("'{}' is inode {} and {}", entry.name, entry.ino, attr->ino);
  if (!seen_.insert(attr->ino).second) return;
  read(*attr);
  if (S_ISDIR(attr->mode) && depth < kMostDepth) walk(attr->ino, depth + 1);
  if (!fixture_.fs().read_only() && changes_) change(directory, entry.name, *attr);
}

void Use::read(const fs::Attr& attr) {
  read_attributes(attr.ino);
  if (S_ISLNK(attr.mode) || !strict_)
    want("readlink", attr.ino, fixture_.call([&](fs::Operation& op) { return fixture_.fs().readlink(op, attr.ino); }));
  if (!S_ISREG(attr.mode) && strict_) return;
  want("read", attr.ino, fixture_.read(attr.ino, 0, std::min<std::uint64_t>(attr.size + 1, kReadBytes)));
  if (attr.size > kReadBytes) want("read of the end", attr.ino, fixture_.read(attr.ino, attr.size - kBlockSize, kBlockSize));
  for (const fs::SeekKind kind : {fs::SeekKind::hole, fs::SeekKind::data})
    want("seek", attr.ino, fixture_.call([&](fs::Operation& op) { return fixture_.fs().seek(op, attr.ino, 0, kind); }),
         {Errc::no_such_offset});
}

void Use::read_attributes(Ino ino) {
  const auto names = fixture_.call([&](fs::Operation& op) { return fixture_.fs().listxattr(op, ino); });
  want("listxattr", ino, names);
  if (!names.ok()) return;
  for (const std::string& name : *names)
    want("getxattr", ino, fixture_.call([&](fs::Operation& op) { return fixture_.fs().getxattr(op, ino, name); }));
}

void Use::change(Ino directory, const std::string& name, const fs::Attr& attr) {
  const auto turn = static_cast<unsigned>(seen_.size());
  if (S_ISREG(attr.mode)) change_file(attr, turn);
  if (turn % 5 == 0) {
    const auto value = test::pattern_bytes(turn, 0, 60);
    want_change("setxattr", attr.ino, fixture_.call([&](fs::Operation& op) {
      return fixture_.fs().setxattr(op, attr.ino, "user.fresh", value, 0);
    }));
  }
  if (S_ISDIR(attr.mode)) return;
  if (turn % 4 == 0)
    want_change("unlink", attr.ino, fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, directory, name); }));
  else if (turn % 7 == 0)
    want_change("rename", attr.ino, fixture_.call([&](fs::Operation& op) {
      return fixture_.fs().rename(op, directory, name, kRootIno, "renamed", 0);
    }));
}

void Use::change_file(const fs::Attr& attr, unsigned turn) {
  const auto call = [&](const char* what, auto&& function) { want_change(what, attr.ino, fixture_.call(function)); };
  // Whole blocks: nothing is read, so no checksum tells what is wrong with the old ones.
  if (turn % 2 == 0) want_change("write", attr.ino, fixture_.write(attr.ino, 0, std::vector<std::byte>(kBlockSize)));
  if (turn % 3 == 0) want_change("write", attr.ino, fixture_.write(attr.ino, 5000, test::pattern_bytes(1, 0, 5000)));
  if (turn % 6 == 1)
    call("truncate", [&](fs::Operation& op) {
      fs::AttrChange change;
      change.size = attr.size / 2 + 1;
      return fixture_.fs().setattr(op, attr.ino, change);
    });
  if (turn % 6 == 2)
    call("fallocate", [&](fs::Operation& op) {
      return fixture_.fs().fallocate(op, attr.ino, fs::FallocateMode::allocate, 4096, 9000);
    });
  if (turn % 6 == 4)
    call("punch", [&](fs::Operation& op) {
      return fixture_.fs().fallocate(op, attr.ino, fs::FallocateMode::punch_hole, 4000, 9000);
    });
}

void Use::make_names() {
  want("make", kRootIno, fixture_.make("/new", S_IFREG | 0644),
       {Errc::exists, Errc::no_space, Errc::not_permitted, Errc::out_of_range, Errc::file_too_big});
  const auto made = fixture_.make("/fresh-directory", S_IFDIR | 0755);
  want("mkdir", kRootIno, made,
       {Errc::exists, Errc::no_space, Errc::not_permitted, Errc::out_of_range, Errc::file_too_big, Errc::too_many_links});
  if (made.ok()) want_change("make", made->ino, fixture_.make("/fresh-directory/file", S_IFREG | 0644));
}

void Use::scrub() {
  bool found = false;
  scrub::Walk walk(fixture_.store(), {}, [&](const scrub::Finding& finding) {
    found = true;
    if (strict_ && !damage_ && broken_.empty()) broken_ = "scrub: " + to_text(finding);
  });
  constexpr unsigned kMostSteps = 2000;
  for (unsigned i = 0; i < kMostSteps && !walk.step().done; ++i) {
  }
}

// What is kept is looked at, one of it is given back, and another is made.
void Use::use_snapshots() {
  using Kind = snapshots::SnapshotChange::Kind;
  const auto kept = fixture_.fs().snapshots().snapshots;
  for (const fs::SnapshotFacts& one : kept) {
    fixture_.show(Serial{one.serial});
    of_one_state();
    fixture_.show({});
  }
  scrub();
  want("making a snapshot", kRootIno, fixture_.snapshot({Kind::create, "fresh", {}}), {Errc::no_space, Errc::exists, Errc::out_of_range});
  for (const fs::SnapshotFacts& one : kept)
    want("deleting a snapshot", kRootIno, fixture_.snapshot({Kind::remove, one.name, {}}), {Errc::no_space, Errc::not_found});
  want("giving back", kRootIno, fixture_.settle_deletions(), {Errc::no_space, Errc::read_only});
}

}  // namespace varve::fuzz
