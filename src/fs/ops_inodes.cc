// Attributes, symlink targets, extended attributes.
#include <algorithm>

#include "fs/acl.h"
#include "fs/engine.h"
#include "fs/inode_util.h"

namespace varve::fs {

namespace {

// The kernel dates what is written through its cache, and tells the times later, without an access time: also after a flag was set that
// forbids to change them. Only regular files have such times, and while one is open for writing the kernel names it. No program can, so
// `touch -m` is told from that. When the last such file is closed, all is told but a new ctime, which comes with the mtime that is known.
bool may_be_written_back(const changes::Inode& inode, const AttrChange& change) REQUIRES_SHARED(inode.mutex) {
  const format::Attributes& known = inode.attributes;
  if (!is_regular(inode)) return false;
  return change.of_open_file || (known.mtime <= *change.mtime && *change.mtime <= std::max(known.mtime, known.ctime));
}

changes::Unsealed::Kind kind_of(const changes::Inode& inode, const AttrChange& change) REQUIRES_SHARED(inode.mutex) {
  using Times = changes::Unsealed::Kind;
  const bool has_more = change.mode || change.uid || change.gid || change.size || change.flags || change.drop_privileges;
  if (!change.of_open_file || has_more) return Times::any;
  return inode.dated_by_write ? Times::known_times : Times::times;
}

// Of an append-only inode `touch` may say that it was used now, and not when else.
Status check_permitted(const changes::Inode& inode, const AttrChange& change) REQUIRES_SHARED(inode.mutex) {
  if (change.mode || change.uid || change.gid || change.size || change.chosen_time) return may_alter(inode);
  if (change.atime) return may_extend(inode);
  if (change.mtime && !may_be_written_back(inode, change)) return may_alter(inode);
  return {};
}

}  // namespace

Result<Attr> Filesystem::getattr(Operation& operation, Ino ino) {
  return engine_->attempt(operation, [&](Attempt& a) -> Result<Attr> {
    changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    return attr_of(*inode, a.view());
  });
}

Result<Attr> Filesystem::setattr(Operation& operation, Ino ino, const AttrChange& change) {
  if (change.size && *change.size > format::kMaxFileBytes) return Errc::file_too_big;
  return engine_->attempt(operation, [&](Attempt& a) -> Result<Attr> {
    changes::InodePtr inode = TRY(a.inode(ino));
    WriteLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    if (change.size && is_directory(*inode)) return Errc::is_directory;
    if (change.size && !is_regular(*inode)) return Errc::invalid;
    TRY(check_permitted(*inode, change));
    format::Attributes& attributes = inode->attributes;
    const Timestamp now = a.now();
    std::optional<format::Bytes> acl;
    bool has_capability = false;
    std::size_t set_bytes = 0;
    if (change.mode || change.size || change.drop_privileges) {
      const auto xattrs = TRY(changes::load_xattrs(*inode, a.view(), a.source()));
      const format::Xattr* found = find_xattr(xattrs, kAccessAcl);
      if (change.mode && found) acl = acl_after_chmod(found->value, *change.mode);
      has_capability = (change.size || change.drop_privileges) && find_xattr(xattrs, kCapability);
      if (acl || has_capability) set_bytes = xattr_bytes(xattrs, nullptr);
    }
    const space::Demand demand{
        .record_bytes = 256 + (acl ? 64 + acl->size() : 0), .places = kFewPlaces, .item_bytes = set_bytes, .frees = true};
    if (change.size) TRY(resize(a, *inode, *change.size, change.is_cut, demand));
    else TRY(a.admit(demand));
    if (acl) a.staging().set_xattr(*inode, kAccessAcl, std::move(*acl), set_bytes);
    if (has_capability) a.staging().set_xattr(*inode, kCapability, std::nullopt, set_bytes);
    if (change.size && !change.kernel_dates) attributes.mtime = now;
    // As with writes: sgid that does not mean execution goes, too, unless the caller is in that group, as far as its groups are known.
    const fs::Caller& caller = operation.caller();
    const bool any_sgid = caller.uid != 0 && caller.gid != attributes.gid;
    if (change.mode) attributes.mode = (attributes.mode & S_IFMT) | (*change.mode & 07777);
    if (change.uid) attributes.uid = *change.uid;
    if (change.gid) attributes.gid = *change.gid;
    if (change.flags) attributes.flags = *change.flags;
    if (change.drop_privileges) drop_suid(*inode, any_sgid);
    if (change.ctime) a.store().options().clock->not_before(*change.ctime);
    if (change.atime) attributes.atime = *change.atime;
    if (change.mtime) attributes.mtime = *change.mtime;
    if (!change.kernel_dates) attributes.ctime = change.ctime ? *change.ctime : now;
    a.staging().set_attributes(*inode, kind_of(*inode, change));
    return attr_of(*inode, a.view());
  });
}

Result<std::string> Filesystem::readlink(Operation& operation, Ino ino) {
  bool touch = false;
  auto result = engine_->attempt(operation, [&](Attempt& a) -> Result<std::string> {
    changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    if (!S_ISLNK(inode->attributes.mode)) return Errc::invalid;
    touch = atime_is_due(engine_->options(), *inode, a.now());
    return changes::load_symlink(*inode, a.view(), a.source());
  });
  if (touch && result.ok()) touch_atime(engine_->operations(), operation, ino);
  return result;
}

// --- extended attributes ------------------------------------------------------------------------------------------------

namespace {
constexpr std::size_t kMaxXattrBytes = 1u << 20;  // of one inode, names and values

Status check_xattr_name(std::string_view name) {
  if (name.empty()) return Errc::out_of_range;
  if (name.size() > format::kMaxName) return Errc::out_of_range;
  return {};
}
}  // namespace

Result<std::vector<std::byte>> Filesystem::getxattr(Operation& operation, Ino ino, std::string_view name) {
  TRY(check_xattr_name(name));
  return engine_->attempt(operation, [&](Attempt& a) -> Result<std::vector<std::byte>> {
    changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    const auto xattrs = TRY(changes::load_xattrs(*inode, a.view(), a.source()));
    const format::Xattr* found = find_xattr(xattrs, name);
    if (!found) return Errc::no_attribute;
    return found->value;
  });
}

Result<std::vector<std::string>> Filesystem::listxattr(Operation& operation, Ino ino) {
  return engine_->attempt(operation, [&](Attempt& a) -> Result<std::vector<std::string>> {
    changes::InodePtr inode = TRY(a.inode(ino));
    ReadLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    std::vector<std::string> names;
    for (format::Xattr& x : TRY(changes::load_xattrs(*inode, a.view(), a.source()))) names.push_back(std::move(x.name));
    return names;
  });
}

Status Filesystem::setxattr(Operation& operation, Ino ino, std::string_view name, std::span<const std::byte> value,
                            unsigned flags) {
  TRY(check_xattr_name(name));
  if (value.size() > format::kMaxXattrValue) return Errc::argument_too_big;
  std::optional<AccessAcl> acl;
  if (name == kAccessAcl) acl = TRY(read_access_acl(value));
  if (name == kDefaultAcl) {
    if (value.size() > kMaxDefaultAcl) return Errc::argument_too_big;
    TRY(read_access_acl(value));
  }
  return engine_->attempt(operation, [&](Attempt& a) -> Status {
    changes::InodePtr inode = TRY(a.inode(ino));
    WriteLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    TRY(may_alter(*inode));
    const auto xattrs = TRY(changes::load_xattrs(*inode, a.view(), a.source()));
    const format::Xattr* found = find_xattr(xattrs, name);
    if (found && (flags & kXattrCreate)) return Errc::exists;
    if (!found && (flags & kXattrReplace)) return Errc::no_attribute;
    const std::size_t total = name.size() + value.size() + xattr_bytes(xattrs, found);
    if (total > kMaxXattrBytes) return Errc::no_space;
    TRY(a.admit({.record_bytes = 320 + name.size() + value.size(), .new_inodes = 1 + blocks_for(value.size()), .places = kFewPlaces,
                 .item_bytes = total}));
    if (!acl || !acl->minimal) a.staging().set_xattr(*inode, name, format::Bytes(value.begin(), value.end()), total);
    else if (found) a.staging().set_xattr(*inode, name, std::nullopt, total);
    if (acl) inode->attributes.mode = (inode->attributes.mode & ~0777U) | acl->permissions;
    if (flags & kXattrDropSetgid) inode->attributes.mode &= ~static_cast<std::uint32_t>(S_ISGID);
    inode->attributes.ctime = a.now();
    a.staging().set_attributes(*inode);
    return {};
  });
}

Status Filesystem::removexattr(Operation& operation, Ino ino, std::string_view name) {
  TRY(check_xattr_name(name));
  return engine_->attempt(operation, [&](Attempt& a) -> Status {
    changes::InodePtr inode = TRY(a.inode(ino));
    WriteLock lock(inode->mutex);
    if (inode->gone()) return Errc::stale;
    TRY(may_alter(*inode));
    const auto xattrs = TRY(changes::load_xattrs(*inode, a.view(), a.source()));
    const format::Xattr* found = find_xattr(xattrs, name);
    if (!found) {
      if (name == kAccessAcl || name == kDefaultAcl) return {};  // none is what was wanted
      return Errc::no_attribute;
    }
    const std::size_t rest = xattr_bytes(xattrs, found);
    TRY(a.admit({.record_bytes = 320 + name.size(), .places = kFewPlaces, .item_bytes = rest, .frees = true}));
    a.staging().set_xattr(*inode, name, std::nullopt, rest);
    inode->attributes.ctime = a.now();
    a.staging().set_attributes(*inode);
    return {};
  });
}

}  // namespace varve::fs
