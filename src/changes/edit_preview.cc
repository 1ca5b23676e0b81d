#include "changes/edit_preview.h"

#include <algorithm>

#include "changes/extent_merge.h"

namespace varve::changes {

using format::ItemKind;
using format::Key;

std::optional<std::uint64_t> EditPreview::next_entry(const InodeDelta& inode, std::uint64_t from) const {
  const auto added = inode.directory->added.lower_bound(from);
  const auto removed = inode.directory->removed.lower_bound(from);
  std::optional<std::uint64_t> next;
  if (added != inode.directory->added.end()) next = added->first;
  if (removed != inode.directory->removed.end()) next = std::min(next.value_or(removed->first), removed->first);
  return next;
}

std::optional<std::uint64_t> EditPreview::next_hash(const InodeDelta& inode, std::uint64_t from) {
  if (hashed_ != &inode) {
    hashed_ = &inode;
    hashes_.clear();
    for (const auto& [cookie, entry] : inode.directory->added) hashes_.push_back(format::name_hash(entry.name, hash_key_));
    for (const auto& [cookie, name] : inode.directory->removed) hashes_.push_back(format::name_hash(name, hash_key_));
    std::sort(hashes_.begin(), hashes_.end());
  }
  const auto at = std::lower_bound(hashes_.begin(), hashes_.end(), from);
  if (at == hashes_.end()) return std::nullopt;
  return *at;
}

std::optional<Key> EditPreview::next_in(const InodeDelta& inode, const Key& from) {
  const Key start = std::max(from, Key{inode.ino, ItemKind::extent, 0});
  const Key end{inode.ino, ItemKind::attributes, 0};
  if (start > end) return std::nullopt;
  if (inode.freed) return inode.created ? std::nullopt : std::optional(start);
  auto offset_for = [&](ItemKind kind) { return start.kind == kind ? start.offset : 0; };
  if (inode.file && start.kind <= ItemKind::extent)
    if (auto block = next_change(*inode.file, offset_for(ItemKind::extent))) return Key{inode.ino, ItemKind::extent, *block};
  if (inode.directory && start.kind <= ItemKind::dirent)
    if (auto cookie = next_entry(inode, offset_for(ItemKind::dirent))) return Key{inode.ino, ItemKind::dirent, *cookie};
  if (inode.directory && start.kind <= ItemKind::name_hash)
    if (auto hash = next_hash(inode, offset_for(ItemKind::name_hash))) return Key{inode.ino, ItemKind::name_hash, *hash};
  for (ItemKind kind : {ItemKind::xattr, ItemKind::symlink}) {
    const bool changes = kind == ItemKind::xattr ? !inode.xattrs.empty() : inode.symlink.has_value();
    const Key key{inode.ino, kind, 0};
    if (changes && key >= start) return key;
  }
  if (inode.has_attributes) return end;
  return std::nullopt;
}

std::optional<Key> EditPreview::next(const Key& from) {
  const auto& inodes = frozen_.inodes();
  auto at = std::lower_bound(inodes.begin(), inodes.end(), from.ino, [](const auto& inode, Ino ino) { return inode->ino < ino; });
  for (; at != inodes.end(); ++at)
    if (auto key = next_in(**at, from)) return key;
  return std::nullopt;
}

}  // namespace varve::changes
