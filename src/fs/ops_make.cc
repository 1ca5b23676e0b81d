// Making inodes, with and without a name.
#include <linux/fs.h>

#include <algorithm>

#include "fs/acl.h"
#include "fs/engine.h"
#include "fs/inode_util.h"

namespace varve::fs {

namespace {

// What a new inode gets from the default ACL of its directory; without one the umask decides.
struct Inheritance {
  explicit Inheritance(std::uint32_t bits) : mode(bits) {}

  std::uint32_t mode;
  format::Bytes access_acl, default_acl;

  std::size_t bytes() const { return 128 + access_acl.size() + default_acl.size(); }
};

Result<Inheritance> inherit(Attempt& a, const changes::Inode& directory, const NewNode& node) REQUIRES_SHARED(directory.mutex) {
  if (S_ISLNK(node.mode)) return Inheritance(S_IFLNK | 0777);
  Inheritance result(node.mode & ~(node.umask & 0777));
  for (const format::Xattr& xattr : TRY(changes::load_xattrs(directory, a.view(), a.source()))) {
    if (xattr.name != kDefaultAcl) continue;
    InheritedAcl acl = TRY(inherit_acl(xattr.value, node.mode));
    result.mode = (node.mode & ~0777U) | acl.permissions;
    result.access_acl = std::move(acl.access);
    if (S_ISDIR(node.mode)) result.default_acl = xattr.value;
  }
  return result;
}

void stage_acls(Attempt& a, changes::Inode& inode, Inheritance&& inherited) REQUIRES(inode.mutex) {
  const std::size_t bytes = inherited.bytes();
  if (!inherited.access_acl.empty()) a.staging().set_xattr(inode, kAccessAcl, std::move(inherited.access_acl), bytes);
  if (!inherited.default_acl.empty()) a.staging().set_xattr(inode, kDefaultAcl, std::move(inherited.default_acl), bytes);
}

// Of the flags that ext4 hands down those that hold here: nobody is promised FS_SYNC_FL any more. Only to what chattr(1) can open, as it
// could not take them away from anything else, nor could `varve receive`.
std::uint32_t inherited_flags(const changes::Inode& directory, std::uint32_t mode) REQUIRES_SHARED(directory.mutex) {
  if (!S_ISREG(mode) && !S_ISDIR(mode)) return 0;
  return directory.attributes.flags & (FS_NODUMP_FL | FS_NOATIME_FL);
}

// In a directory that hands its group down, somebody outside of that group must not make a program that runs with it. The umask does not
// count, as the kernel has it.
bool may_be_setgid(const NewNode& node, std::uint32_t gid) {
  if (!node.groups || !runs_with_group(node.mode)) return true;
  return std::ranges::find(*node.groups, gid) != node.groups->end();
}

// Attributes of a new inode below `directory`; the setgid bit of a directory hands its group down.
void fill_attributes(Attempt& a, changes::Inode& inode, const changes::Inode& directory, const NewNode& node,
                     std::uint32_t mode, Timestamp now) REQUIRES(inode.mutex) REQUIRES_SHARED(directory.mutex) {
  const Caller& caller = a.operation().caller();
  format::Attributes& attributes = inode.attributes;
  attributes = {};
  attributes.mode = mode;
  attributes.uid = caller.uid;
  attributes.gid = caller.gid;
  if (directory.attributes.mode & S_ISGID) {
    attributes.gid = directory.attributes.gid;
    if (S_ISDIR(node.mode)) attributes.mode |= S_ISGID;
    else if (!may_be_setgid(node, attributes.gid)) attributes.mode &= ~static_cast<std::uint32_t>(S_ISGID);
  }
  attributes.flags = inherited_flags(directory, node.mode);
  attributes.rdev = S_ISCHR(node.mode) || S_ISBLK(node.mode) ? node.rdev : 0;
  attributes.nlink = S_ISDIR(node.mode) ? 2 : 1;
  attributes.size = node.symlink.size();
  attributes.generation = static_cast<std::uint32_t>(a.store().options().random->next());
  attributes.parent = S_ISDIR(node.mode) ? directory.ino : Ino{};
  attributes.atime = attributes.mtime = attributes.ctime = attributes.btime = now;
}

}  // namespace

Result<Attr> Filesystem::make(Operation& operation, Ino parent, std::string_view name, const NewNode& node) {
  TRY(check_new_name(name));
  if (node.symlink.size() > format::kMaxSymlink) return Errc::name_too_long;
  return engine_->attempt(operation, [&](Attempt& a) -> Result<Attr> {
    changes::InodePtr directory = TRY(a.directory(parent));
    WriteLock lock(directory->mutex);
    if (directory->gone() || directory->attributes.nlink == 0) return Errc::not_found;
    if (TRY(find_name(a, *directory, name))) return Errc::exists;
    if (S_ISDIR(node.mode) && directory->attributes.nlink >= kMaxLinks) return Errc::too_many_links;
    TRY(may_extend(*directory));
    Inheritance inherited = TRY(inherit(a, *directory, node));
    TRY(a.admit({.record_bytes = entry_record_bytes(name) + node.symlink.size() + inherited.bytes(),
                 .new_inodes = 1 + blocks_for(node.symlink.size()), .places = kFewPlaces}));
    const Timestamp now = a.now();
    changes::InodePtr inode = a.staging().create_inode();
    WriteLock inode_lock(inode->mutex);
    fill_attributes(a, *inode, *directory, node, inherited.mode, now);
    stage_acls(a, *inode, std::move(inherited));
    if (S_ISLNK(node.mode)) a.staging().set_symlink(*inode, node.symlink);
    a.staging().set_attributes(*inode);
    a.staging().add_entry(*directory, name, inode->ino, entry_type(node.mode));
    if (S_ISDIR(node.mode)) ++directory->attributes.nlink;
    touch_mtime(*directory, now);
    a.staging().set_attributes(*directory);
    a.operations().references().add(inode->ino, 1);
    return attr_of(*inode, a.view());
  });
}

Result<Attr> Filesystem::make_unnamed(Operation& operation, Ino parent, const NewNode& node) {
  return engine_->attempt(operation, [&](Attempt& a) -> Result<Attr> {
    changes::InodePtr directory = TRY(a.directory(parent));
    ReadLock lock(directory->mutex);
    if (directory->gone()) return Errc::not_found;
    TRY(may_extend(*directory));
    Inheritance inherited = TRY(inherit(a, *directory, node));
    TRY(a.admit({.record_bytes = 512 + inherited.bytes(), .new_inodes = 1, .places = kFewPlaces}));
    changes::InodePtr inode = a.staging().create_inode();
    WriteLock inode_lock(inode->mutex);
    fill_attributes(a, *inode, *directory, node, inherited.mode, a.now());
    stage_acls(a, *inode, std::move(inherited));
    inode->attributes.nlink = 0;
    a.staging().set_attributes(*inode);
    a.staging().set_orphan(*inode, true);
    a.operations().references().add(inode->ino, 1);
    a.operations().references().add_orphan(inode->ino);
    return attr_of(*inode, a.view());
  });
}

}  // namespace varve::fs
