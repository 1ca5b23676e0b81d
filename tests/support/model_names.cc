// The part of ModelFs that changes names.
#include <sys/stat.h>

#include "format/layout.h"
#include "support/model_fs.h"

namespace varve::test {

namespace {

constexpr unsigned kNoReplace = 1;
constexpr unsigned kExchange = 2;

}  // namespace

// The parent, if a new name may be made there.
Result<ModelId> ModelFs::new_entry_place(ModelId parent, std::string_view name) const {
  const ModelInode& directory = inode(parent);
  if (!directory.is_directory()) return Errc::not_directory;
  if (name.size() > format::kMaxName) return Errc::name_too_long;
  if (directory.nlink == 0) return Errc::not_found;
  if (name == "." || name == ".." || directory.entries.contains(name)) return Errc::exists;
  return parent;
}

Result<ModelId> ModelFs::existing_entry(ModelId parent, std::string_view name) const {
  if (name == "." || name == "..") return Errc::invalid;
  return lookup(parent, name);
}

ModelId ModelFs::add_inode(ModelId parent, const ModelNewNode& node, Timestamp now) {
  auto inode = std::make_shared<ModelInode>();
  const ModelInode& directory = *inodes_.at(parent);
  inode->mode = node.mode;
  inode->uid = node.uid;
  inode->gid = node.gid;
  if (directory.mode & S_ISGID) {
    inode->gid = directory.gid;
    if (S_ISDIR(node.mode)) inode->mode |= S_ISGID;
  }
  inode->rdev = S_ISCHR(node.mode) || S_ISBLK(node.mode) ? node.rdev : 0;
  inode->symlink = std::string(node.symlink);
  inode->size = node.symlink.size();
  inode->parent = parent;
  inode->atime = inode->mtime = inode->ctime = inode->btime = now;
  const ModelId id = next_id_++;
  inodes_.emplace(id, std::move(inode));
  return id;
}

void ModelFs::touch(ModelId directory, Timestamp now) {
  ModelInode& inode = edit(directory);
  inode.mtime = inode.ctime = now;
}

// Names `id` in `parent`; keeps the parent's count of subdirectories, not the inode's own link count.
void ModelFs::enter(ModelId parent, std::string_view name, ModelId id, Timestamp now) {
  touch(parent, now);
  edit(parent).entries.insert_or_assign(std::string(name), id);
  if (!inode(id).is_directory()) return;
  ++edit(parent).nlink;
  edit(id).parent = parent;
}

void ModelFs::leave(ModelId parent, std::string_view name, Timestamp now) {
  touch(parent, now);
  ModelInode& directory = edit(parent);
  auto entry = directory.entries.find(name);
  if (inode(entry->second).is_directory()) --directory.nlink;
  directory.entries.erase(entry);
}

// One name less: an inode without names goes unless it is held.
void ModelFs::drop_link(ModelId id, Timestamp now) {
  ModelInode& inode = edit(id);
  inode.ctime = now;
  inode.nlink = inode.is_directory() ? 0 : inode.nlink - 1;
  reap(id);
}

Result<ModelId> ModelFs::make(ModelId parent, std::string_view name, const ModelNewNode& node, Timestamp now) {
  TRY(new_entry_place(parent, name));
  if (S_ISLNK(node.mode) && node.symlink.size() > format::kMaxSymlink) return Errc::name_too_long;
  const ModelId id = add_inode(parent, node, now);
  edit(id).nlink = S_ISDIR(node.mode) ? 2 : 1;
  enter(parent, name, id, now);
  return id;
}

Result<ModelId> ModelFs::make_unnamed(ModelId parent, const ModelNewNode& node, Timestamp now) {
  if (!inode(parent).is_directory()) return Errc::not_directory;
  if (inode(parent).nlink == 0) return Errc::not_found;
  return add_inode(parent, node, now);
}

// An inode that has lost its last name gets a new one here; that only files of O_TMPFILE may is for the kernel to say.
Status ModelFs::link(ModelId id, ModelId parent, std::string_view name, Timestamp now) {
  if (inode(id).is_directory()) return Errc::not_permitted;
  TRY(new_entry_place(parent, name));
  ++edit(id).nlink;
  edit(id).ctime = now;
  enter(parent, name, id, now);
  return {};
}

Status ModelFs::unlink(ModelId parent, std::string_view name, Timestamp now) {
  const ModelId id = TRY(existing_entry(parent, name));
  if (inode(id).is_directory()) return Errc::is_directory;
  leave(parent, name, now);
  drop_link(id, now);
  return {};
}

Status ModelFs::rmdir(ModelId parent, std::string_view name, Timestamp now) {
  const ModelId id = TRY(existing_entry(parent, name));
  if (!inode(id).is_directory()) return Errc::not_directory;
  if (!inode(id).entries.empty()) return Errc::not_empty;
  leave(parent, name, now);
  drop_link(id, now);
  return {};
}

// In the order in which the kernel's rename checks them.
Status ModelFs::check_rename(ModelId source, ModelId from_parent, std::optional<ModelId> target, ModelId to_parent,
                             unsigned flags) const {
  if (target && (flags & kNoReplace)) return Errc::exists;
  if (!target && (flags & kExchange)) return Errc::not_found;
  const bool source_is_directory = inode(source).is_directory();
  if (source_is_directory && is_ancestor(source, to_parent)) return Errc::loop;
  if (target && inode(*target).is_directory() && is_ancestor(*target, from_parent)) {
    return flags & kExchange ? Errc::loop : Errc::not_empty;
  }
  if (!target || (flags & kExchange) || *target == source) return {};
  const bool target_is_directory = inode(*target).is_directory();
  if (source_is_directory && !target_is_directory) return Errc::not_directory;
  if (!source_is_directory && target_is_directory) return Errc::is_directory;
  if (target_is_directory && !inode(*target).entries.empty()) return Errc::not_empty;
  return {};
}

Status ModelFs::rename(ModelId from_parent, std::string_view from, ModelId to_parent, std::string_view to,
                       unsigned flags, Timestamp now) {
  if ((flags & kNoReplace) && (flags & kExchange)) return Errc::invalid;
  const ModelId source = TRY(existing_entry(from_parent, from));
  auto found = existing_entry(to_parent, to);
  if (!found.ok() && !found.fails_with(Errc::not_found)) return found.error();
  const std::optional<ModelId> target = found.ok() ? std::optional(*found) : std::nullopt;
  if (!target && inode(to_parent).nlink == 0) return Errc::not_found;
  TRY(check_rename(source, from_parent, target, to_parent, flags));
  if (target == source) return {};  // two names of one inode: POSIX wants nothing to happen
  if (flags & kExchange) {
    exchange(from_parent, from, to_parent, to, now);
    return {};
  }
  if (target) {
    leave(to_parent, to, now);
    drop_link(*target, now);
  }
  leave(from_parent, from, now);
  enter(to_parent, to, source, now);
  edit(source).ctime = now;
  return {};
}

void ModelFs::exchange(ModelId from_parent, std::string_view from, ModelId to_parent, std::string_view to,
                       Timestamp now) {
  const ModelId source = *lookup(from_parent, from);
  const ModelId target = *lookup(to_parent, to);
  leave(from_parent, from, now);
  leave(to_parent, to, now);
  enter(from_parent, from, target, now);
  enter(to_parent, to, source, now);
  edit(source).ctime = now;
  edit(target).ctime = now;
}

}  // namespace varve::test
