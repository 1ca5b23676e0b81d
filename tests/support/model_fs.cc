#include "support/model_fs.h"

#include <sys/stat.h>

#include <algorithm>

#include "format/layout.h"

namespace varve::test {

namespace {

constexpr unsigned kXattrCreateFlag = 1;
constexpr unsigned kXattrReplaceFlag = 2;

Status data_target(const ModelInode& inode) {
  if (inode.is_directory()) return Errc::is_directory;
  if (!inode.is_file()) return Errc::invalid;
  return {};
}

bool beyond_limit(std::uint64_t offset, std::uint64_t length) {
  return offset > format::kMaxFileBytes || length > format::kMaxFileBytes - offset;
}

}  // namespace

bool ModelInode::is_directory() const { return S_ISDIR(mode); }
bool ModelInode::is_file() const { return S_ISREG(mode); }
bool ModelInode::is_symlink() const { return S_ISLNK(mode); }

ModelFs::ModelFs() {
  auto root = std::make_shared<ModelInode>();
  root->mode = S_IFDIR | 0755;
  root->nlink = 2;
  root->parent = kModelRoot;
  inodes_[kModelRoot] = std::move(root);
}

// The one way to change an inode: makes it our own if a copy of this model shares it.
ModelInode& ModelFs::edit(ModelId id) {
  auto& slot = inodes_.at(id);
  if (slot.use_count() > 1) slot = std::make_shared<ModelInode>(*slot);
  slot->content_hash.reset();
  return *slot;
}

Result<ModelId> ModelFs::lookup(ModelId directory, std::string_view name) const {
  const ModelInode& inode = *inodes_.at(directory);
  if (!inode.is_directory()) return Errc::not_directory;
  if (name == ".") return directory;
  if (name == "..") return inode.parent;
  if (name.size() > format::kMaxName) return Errc::name_too_long;
  auto entry = inode.entries.find(name);
  if (entry == inode.entries.end()) return Errc::not_found;
  return entry->second;
}

Result<ModelId> ModelFs::resolve(std::string_view path) const {
  ModelId at = kModelRoot;
  while (!path.empty()) {
    const std::size_t slash = path.find('/');
    const std::string_view name = path.substr(0, slash);
    path = slash == std::string_view::npos ? std::string_view{} : path.substr(slash + 1);
    if (!name.empty()) at = TRY(lookup(at, name));
  }
  return at;
}

bool ModelFs::is_ancestor(ModelId above, ModelId below) const {
  for (;;) {
    if (above == below) return true;
    if (below == kModelRoot) return false;
    below = inodes_.at(below)->parent;
  }
}

std::uint64_t ModelFs::written_bytes() const {
  std::uint64_t sum = 0;
  for (const auto& [id, inode] : inodes_) sum += inode->content.written_bytes();
  return sum;
}

Status ModelFs::setattr(ModelId id, const ModelAttrChange& change, Timestamp now) {
  if (change.size) {
    TRY(data_target(inode(id)));
    if (*change.size > format::kMaxFileBytes) return Errc::file_too_big;
  }
  ModelInode& inode = edit(id);
  if (change.mode) inode.mode = (inode.mode & S_IFMT) | (*change.mode & 07777);
  if (change.uid) inode.uid = *change.uid;
  if (change.gid) inode.gid = *change.gid;
  if (change.size) {
    if (*change.size < inode.size) inode.content.shrink(*change.size);
    inode.mtime = now;  // also when the size stays, as ftruncate and O_TRUNC do
    inode.size = *change.size;
  }
  if (change.atime) inode.atime = *change.atime;
  if (change.mtime) inode.mtime = *change.mtime;
  inode.ctime = now;
  return {};
}

Status ModelFs::write(ModelId id, std::uint64_t offset, std::uint64_t length, std::uint64_t seed, Timestamp now) {
  TRY(data_target(inode(id)));
  if (length == 0) return {};
  if (beyond_limit(offset, length)) return Errc::file_too_big;
  ModelInode& inode = edit(id);
  inode.content.write(offset, length, seed);
  inode.size = std::max(inode.size, offset + length);
  inode.mtime = inode.ctime = now;
  return {};
}

Status ModelFs::fallocate(ModelId id, ModelFallocate mode, std::uint64_t offset, std::uint64_t length, Timestamp now) {
  TRY(data_target(inode(id)));
  if (length == 0) return Errc::invalid;
  if (beyond_limit(offset, length)) return Errc::file_too_big;
  ModelInode& inode = edit(id);
  switch (mode) {
    case ModelFallocate::allocate:
    case ModelFallocate::allocate_keep_size:
      inode.content.allocate(offset, length);
      break;
    case ModelFallocate::punch_hole:
      inode.content.punch(offset, length);
      break;
    case ModelFallocate::zero_range:
    case ModelFallocate::zero_range_keep_size:
      inode.content.zero(offset, length);
      break;
  }
  if (mode == ModelFallocate::allocate || mode == ModelFallocate::zero_range) {
    inode.size = std::max(inode.size, offset + length);
  }
  inode.mtime = inode.ctime = now;
  return {};
}

Status ModelFs::setxattr(ModelId id, std::string_view name, ModelValue value, unsigned flags, Timestamp now) {
  if (name.size() > format::kMaxName) return Errc::out_of_range;
  if (value.length > format::kMaxXattrValue) return Errc::argument_too_big;
  const bool exists = inode(id).xattrs.contains(name);
  if (exists && (flags & kXattrCreateFlag)) return Errc::exists;
  if (!exists && (flags & kXattrReplaceFlag)) return Errc::no_attribute;
  ModelInode& inode = edit(id);
  inode.xattrs[std::string(name)] = value;
  inode.ctime = now;
  return {};
}

Status ModelFs::removexattr(ModelId id, std::string_view name, Timestamp now) {
  if (!inode(id).xattrs.contains(name)) return Errc::no_attribute;
  ModelInode& inode = edit(id);
  inode.xattrs.erase(inode.xattrs.find(name));
  inode.ctime = now;
  return {};
}

void ModelFs::hold(const std::string& slot, ModelId id) {
  auto [place, inserted] = slots_.try_emplace(slot, id);
  const ModelId before = place->second;
  place->second = id;
  if (!inserted && before != id) reap(before);
}

Status ModelFs::release(const std::string& slot) {
  auto place = slots_.find(slot);
  if (place == slots_.end()) return Errc::not_found;
  const ModelId id = place->second;
  slots_.erase(place);
  reap(id);
  return {};
}

Result<ModelId> ModelFs::held(std::string_view slot) const {
  auto place = slots_.find(slot);
  if (place == slots_.end()) return Errc::not_found;
  return place->second;
}

void ModelFs::drop_all_references() {
  slots_.clear();
  std::erase_if(inodes_, [](const auto& item) { return item.second->nlink == 0; });
}

Status ModelFs::keep(const std::string& name) {
  if (kept_.contains(name)) return Errc::exists;
  keep_state(name, *this);
  return {};
}

void ModelFs::keep_state(const std::string& name, const ModelFs& state) {
  auto kept = std::make_shared<ModelFs>(state);
  kept->kept_.clear();
  kept->drop_all_references();
  kept_.insert_or_assign(name, std::move(kept));
}

Status ModelFs::drop(const std::string& name) { return kept_.erase(name) ? Status() : Status(Errc::not_found); }

Status ModelFs::relabel(const std::string& name, const std::string& new_name) {
  if (!kept_.contains(name)) return Errc::not_found;
  if (name == new_name) return {};
  if (kept_.contains(new_name)) return Errc::exists;
  auto node = kept_.extract(name);
  node.key() = new_name;
  kept_.insert(std::move(node));
  return {};
}

bool ModelFs::is_held(ModelId id) const {
  return std::any_of(slots_.begin(), slots_.end(), [id](const auto& slot) { return slot.second == id; });
}

void ModelFs::reap(ModelId id) {
  auto place = inodes_.find(id);
  if (place != inodes_.end() && place->second->nlink == 0 && !is_held(id)) inodes_.erase(place);
}

void ModelFs::bind(ModelId id, Ino ino, std::uint32_t generation) {
  ModelInode& inode = edit(id);
  inode.ino = ino;
  inode.generation = generation;
}

void ModelFs::adopt_times(ModelId id, Timestamp atime, Timestamp mtime, Timestamp ctime, Timestamp btime) {
  ModelInode& inode = edit(id);
  inode.atime = atime;
  inode.mtime = mtime;
  inode.ctime = ctime;
  inode.btime = btime;
}

}  // namespace varve::test
