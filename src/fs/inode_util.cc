#include "fs/inode_util.h"

#include <linux/fs.h>

#include <algorithm>

#include "space/space.h"

namespace varve::fs {

namespace {
constexpr std::size_t kAttributesRecordBytes = 256;
}

Attr attr_of(const changes::Inode& inode, const tree::TreeView& view) {
  const format::Attributes& a = inode.attributes;
  Attr attr;
  attr.ino = inode.ino;
  attr.generation = a.generation;
  attr.mode = a.mode;
  attr.uid = a.uid;
  attr.gid = a.gid;
  attr.nlink = a.nlink;
  attr.rdev = a.rdev;
  attr.flags = a.flags;
  attr.size = S_ISDIR(a.mode) ? a.entries * 32 : a.size;
  attr.blocks = changes::block_count(inode, view);
  // Perhaps a tail, for which nobody has looked. Programs that copy take a file without blocks for one hole.
  if (view.has_tails && attr.blocks == 0 && S_ISREG(a.mode) && a.size > 0 && a.size < kBlockSize) attr.blocks = 1;
  attr.atime = a.atime;
  attr.mtime = a.mtime;
  attr.ctime = a.ctime;
  attr.btime = a.btime;
  return attr;
}

void drop_suid(changes::Inode& inode, bool any_sgid) {
  std::uint32_t& mode = inode.attributes.mode;
  if (S_ISDIR(mode)) return;
  mode &= ~static_cast<std::uint32_t>(S_ISUID);
  if (any_sgid || (mode & S_IXGRP)) mode &= ~static_cast<std::uint32_t>(S_ISGID);
}

void release_unlinked(Attempt& attempt, changes::Inode& inode) {
  store::Store& store = attempt.store();
  operation::References& references = attempt.operations().references();
  if (references.count(inode.ino)) {
    store.staging().set_attributes(inode);
    store.staging().set_orphan(inode, true);
    references.add_orphan(inode.ino);
    // The last reference may have gone just before it was listed; then nobody else frees it.
    if (references.count(inode.ino) || !references.take_orphan(inode.ino)) return;
  }
  store.staging().free_inode(inode);
}

Status check_new_name(std::string_view name) {
  if (name.size() > format::kMaxName) return Errc::name_too_long;
  if (name == "." || name == "..") return Errc::exists;
  if (name.empty() || name.find('/') != std::string_view::npos || name.find('\0') != std::string_view::npos)
    return Errc::invalid;
  return {};
}

bool atime_is_due(const Options& options, const changes::Inode& inode, Timestamp now) {
  constexpr std::int64_t kDaySeconds = 24 * 60 * 60;
  const format::Attributes& a = inode.attributes;
  if (options.atime == Atime::never || options.read_only || (a.flags & FS_NOATIME_FL)) return false;
  if (options.atime == Atime::always) return true;
  return a.atime <= a.mtime || a.atime <= a.ctime || now.seconds - a.atime.seconds >= kDaySeconds;
}

void touch_atime(operation::Operations& operations, Operation& operation, Ino ino) {
  if (operation.shown()) return;
  (void)operations.attempt(operation, [&](Attempt& a) -> Status {
    store::Store& store = a.store();
    if (store.space().changes_fill_memory()) return {};  // a reader does not wait for that
    changes::InodePtr inode = TRY(a.inode(ino));
    WriteLock lock(inode->mutex);
    if (inode->gone() || store.faults().read_only() || store.faults().host_full()) return {};
    const space::Demand demand{.record_bytes = kAttributesRecordBytes, .places = 2};
    const auto room = store.space().admit(demand);
    if (room == space::Space::Room::chunk_full) {
      a.wait().retry = Retry::with_seal;
      return Errc::would_block;
    }
    if (room == space::Space::Room::no_segment) return {};
    inode->attributes.atime = a.now();
    store.staging().set_attributes(*inode, changes::Unsealed::Kind::times);
    store.space().withdraw(demand);
    return {};
  });
}

const format::Xattr* find_xattr(const std::vector<format::Xattr>& xattrs, std::string_view name) {
  auto at = std::find_if(xattrs.begin(), xattrs.end(), [&](const format::Xattr& x) { return x.name == name; });
  return at == xattrs.end() ? nullptr : &*at;
}

std::size_t xattr_bytes(const std::vector<format::Xattr>& xattrs, const format::Xattr* without) {
  std::size_t bytes = 0;
  for (const format::Xattr& x : xattrs)
    if (&x != without) bytes += x.name.size() + x.value.size();
  return bytes;
}

Result<std::size_t> set_with_capability(Attempt& attempt, const changes::Inode& inode) {
  const auto xattrs = TRY(changes::load_xattrs(inode, attempt.view(), attempt.source()));
  return find_xattr(xattrs, kCapability) ? xattr_bytes(xattrs, nullptr) : 0;
}

Result<Privileges> Privileges::look(Attempt& attempt, const changes::Inode& inode, const WriteFlags& flags) {
  Privileges found(flags);
  if (flags.drop_privileges) found.set_with_capability_ = TRY(set_with_capability(attempt, inode));
  return found;
}

void Privileges::drop(Attempt& attempt, changes::Inode& inode) const {
  if (!flags_.drop_privileges) return;
  drop_suid(inode, flags_.drop_sgid);
  if (set_with_capability_) attempt.staging().set_xattr(inode, kCapability, std::nullopt, set_with_capability_);
}

Status may_alter(const changes::Inode& inode) {
  if (inode.attributes.flags & (FS_IMMUTABLE_FL | FS_APPEND_FL)) return Errc::not_permitted;
  return {};
}

Status must_be_file(const changes::Inode& inode) {
  if (inode.gone()) return Errc::stale;
  if (!is_regular(inode)) return is_directory(inode) ? Errc::is_directory : Errc::invalid;
  return {};
}

// What one operation takes of a directory: a rename in it changes two names.
constexpr std::uint64_t kMostCookies = 2;

Status may_extend(const changes::Inode& directory) {
  if (directory.attributes.flags & FS_IMMUTABLE_FL) return Errc::not_permitted;
  // Nobody gets there but with an image made for it.
  if (directory.attributes.next_cookie + kMostCookies > format::kCookieLimit) return Errc::no_space;
  return {};
}

Status may_remove_name(const changes::Inode& directory, const changes::Inode& inode) {
  TRY(may_alter(directory));
  return may_alter(inode);
}

}  // namespace varve::fs
