#include "changes/delta_editor.h"

#include <linux/fs.h>

#include <algorithm>

#include <fmt/format.h>

#include "base/invariant.h"
#include "changes/extent_merge.h"

namespace varve::changes {

using format::ItemKind;
using format::ItemRef;
using format::Key;

namespace {
constexpr std::uint64_t kNoLimit = ~0ULL;
constexpr std::size_t kPiece = format::kMaxItemValue;
}  // namespace

DeltaEditor::DeltaEditor(Delta& frozen, const tree::TreeView& old, tree::NodeSource& source, const HashKey& hash_key, Released released,
                         bool tell_moves)
    : frozen_(frozen), old_(old), source_(source), hash_key_(hash_key), released_(std::move(released)), tell_moves_(tell_moves),
      preview_(frozen, hash_key) {
  for (const auto& inode : frozen_.inodes())
    if (inode->orphan && !inode->vanished()) orphans_.emplace_back(inode->ino, *inode->orphan && !inode->freed);
    else if (inode->freed && !inode->created) orphans_.emplace_back(inode->ino, false);
  enter_inode();
}

void DeltaEditor::enter_inode() {
  now_.inode = nullptr;
  for (; inode_at_ < frozen_.inodes().size(); ++inode_at_) {
    InodeDelta& next = *frozen_.inodes()[inode_at_];
    next.owned.merged.reset();
    if (next.freed && next.created) continue;  // the tree never knew it
    now_.inode = &next;
    break;
  }
  if (!now_.inode) return;
  now_.block_change = 0;
  now_.freed_from = Key{now_.inode->ino, ItemKind::extent, 0};
  if (now_.inode->freed) return;
  now_.block_at = 0;
  now_.extents_done = !now_.inode->file;
  now_.entries.clear();
  now_.hashes.clear();
  now_.entry_at = now_.hash_at = 0;
  if (now_.inode->directory) {
    for (const auto& [cookie, entry] : now_.inode->directory->added) {
      now_.entries.push_back({cookie, &entry});
      now_.hashes.push_back({format::name_hash(entry.name, hash_key_), cookie, true});
    }
    for (const auto& [cookie, name] : now_.inode->directory->removed) {
      if (!now_.inode->directory->added.contains(cookie)) now_.entries.push_back({cookie, nullptr});  // else replaced
      now_.hashes.push_back({format::name_hash(name, hash_key_), cookie, false});
    }
    std::sort(now_.entries.begin(), now_.entries.end(), [](const auto& a, const auto& b) { return a.cookie < b.cookie; });
    std::sort(now_.hashes.begin(), now_.hashes.end());
  }
  now_.xattr_piece = now_.symlink_piece = 0;
  now_.xattr_done = now_.inode->xattrs.empty();
  now_.xattr_loaded = false;
  now_.symlink_done = !now_.inode->symlink;
  now_.symlink_blob.clear();
  if (now_.inode->symlink) {
    const auto bytes = std::as_bytes(std::span(now_.inode->symlink->data(), now_.inode->symlink->size()));
    now_.symlink_blob.assign(bytes.begin(), bytes.end());
  }
  now_.attributes_done = !now_.inode->has_attributes && !now_.inode->file;
}

std::optional<Key> DeltaEditor::inode_key() const {
  const Ino ino = now_.inode->ino;
  if (now_.inode->freed) return now_.freed_from;
  if (!now_.extents_done)
    if (auto block = next_change(*now_.inode->file, now_.block_at)) return Key{ino, ItemKind::extent, *block};
  if (now_.entry_at < now_.entries.size()) return Key{ino, ItemKind::dirent, now_.entries[now_.entry_at].cookie};
  if (now_.hash_at < now_.hashes.size()) return Key{ino, ItemKind::name_hash, now_.hashes[now_.hash_at].hash};
  if (!now_.xattr_done) return Key{ino, ItemKind::xattr, now_.xattr_piece};
  if (!now_.symlink_done) return Key{ino, ItemKind::symlink, now_.symlink_piece};
  // Moved blocks change nothing in the attributes.
  if (!now_.attributes_done && (now_.inode->has_attributes || now_.block_change)) return Key{ino, ItemKind::attributes, 0};
  return std::nullopt;
}

std::optional<Key> DeltaEditor::next_key() {
  std::optional<Key> next;
  if (orphan_at_ < orphans_.size()) {
    next = Key{format::kOrphanIno, ItemKind::orphan, orphans_[orphan_at_].first.v};
  } else {
    while (now_.inode && !(next = inode_key())) {
      ++inode_at_;
      enter_inode();
    }
  }
  return next;
}

Status DeltaEditor::edit(Items old_items, const Key& bound, tree::ItemSink& out) {
  std::size_t at = 0;
  for (;;) {
    const auto key = next_key();
    if (!key || *key >= bound) break;
    const bool whole_inode = orphan_at_ >= orphans_.size() && now_.inode && now_.inode->freed;
    const Key group{key->ino, whole_inode ? ItemKind::extent : key->kind, 0};
    const Key group_end = whole_inode ? Key{key->ino, ItemKind::attributes, kNoLimit} : Key{key->ino, key->kind, kNoLimit};
    for (; at < old_items.size() && old_items[at].key < group; ++at)
      TRY(out.put(old_items[at].key, old_items[at].value));
    const std::size_t begin = at;
    while (at < old_items.size() && old_items[at].key <= group_end) ++at;
    const Items members = old_items.subspan(begin, at - begin);
    if (whole_inode) {
      for (const ItemRef& item : members) TRY(release_item(item));
      if (bound > group_end) {
        ++inode_at_;
        enter_inode();
      } else {
        now_.freed_from = bound;
      }
      continue;
    }
    const bool open_end = bound.ino == key->ino && bound.kind == key->kind;
    TRY(edit_group(*key, members, open_end ? bound.offset - 1 : kNoLimit, out));
  }
  for (; at < old_items.size(); ++at) TRY(out.put(old_items[at].key, old_items[at].value));
  return {};
}

Status DeltaEditor::edit_group(const Key& key, Items old_items, std::uint64_t last, tree::ItemSink& out) {
  switch (key.kind) {
    case ItemKind::orphan: return edit_orphans(old_items, last, out);
    case ItemKind::extent: return edit_extents(old_items, last, out);
    case ItemKind::dirent: return edit_entries(old_items, last, out);
    case ItemKind::name_hash: return edit_hashes(old_items, last, out);
    case ItemKind::xattr:
    case ItemKind::symlink: return edit_blob(key.kind, old_items, last, out);
    case ItemKind::attributes: return edit_attributes(old_items, out);
    default: break;
  }
  return Errc::corrupt;
}

Status DeltaEditor::edit_orphans(Items old_items, std::uint64_t last, tree::ItemSink& out) {
  std::size_t at = 0;
  for (; orphan_at_ < orphans_.size() && orphans_[orphan_at_].first.v <= last; ++orphan_at_) {
    const auto [ino, set] = orphans_[orphan_at_];
    for (; at < old_items.size() && old_items[at].key.offset < ino.v; ++at)
      TRY(out.put(old_items[at].key, old_items[at].value));
    if (at < old_items.size() && old_items[at].key.offset == ino.v) ++at;
    if (set) TRY(out.put(Key{format::kOrphanIno, ItemKind::orphan, ino.v}, {}));
  }
  for (; at < old_items.size(); ++at) TRY(out.put(old_items[at].key, old_items[at].value));
  return {};
}

Status DeltaEditor::edit_extents(Items old_items, std::uint64_t last, tree::ItemSink& out) {
  const std::uint64_t limit = last == kNoLimit ? kNoLimit : last + 1;  // no file has a block there
  std::vector<PlacedExtent> old_extents;
  old_extents.reserve(old_items.size());
  INVARIANT(now_.inode->file != nullptr && now_.block_at < limit);
  Tails tails;
  for (const ItemRef& item : old_items) {
    if (!format::is_tail(item.value)) old_extents.emplace_back(item.key.offset, TRY(format::decode_extent(item.value)));
    else if (!is_changed(*now_.inode->file, item.key.offset)) tails[item.key.offset] = TRY(format::decode_tail(item.value));
  }
  const ExtentMerge merge = merge_extents(old_extents, *now_.inode->file, now_.block_at, limit);
  for (const PlacedExtent& part : merge.replaced) {
    now_.block_change -= static_cast<std::int64_t>(part.second.length);
    TRY(release_replaced(part));
  }
  now_.block_change += static_cast<std::int64_t>(merge.added + merge.added_unwritten);
  totals_.data_blocks += static_cast<std::int64_t>(merge.added);
  totals_.reserved_blocks += static_cast<std::int64_t>(merge.added_unwritten);
  for (const auto& [block, bytes] : merge.tails) {
    INVARIANT(now_.inode->has_attributes && block + 1 == blocks_for(now_.inode->attributes.size));  // or the tree would be wrong
    tails[block] = *bytes;
  }
  TRY(put_extents(merge, tails, out));
  now_.block_at = limit;
  now_.extents_done = limit == kNoLimit;
  return {};
}

Status DeltaEditor::put_extents(const ExtentMerge& merge, const Tails& tails, tree::ItemSink& out) {
  format::Bytes value;
  auto tail = tails.begin();
  const auto put_tails = [&](std::uint64_t before) -> Status {
    for (; tail != tails.end() && tail->first < before; ++tail) {
      value.clear();
      format::encode_tail(tail->second, value);
      TRY(out.put(Key{now_.inode->ino, ItemKind::extent, tail->first}, value));
    }
    return {};
  };
  for (const auto& [first, extent] : merge.extents) {
    TRY(put_tails(first));
    value.clear();
    format::encode_extent(extent, value);
    TRY(out.put(Key{now_.inode->ino, ItemKind::extent, first}, value));
  }
  return put_tails(kNoLimit);
}

Status DeltaEditor::edit_entries(Items old_items, std::uint64_t last, tree::ItemSink& out) {
  std::size_t at = 0;
  format::Bytes value;
  for (; now_.entry_at < now_.entries.size() && now_.entries[now_.entry_at].cookie <= last; ++now_.entry_at) {
    const EntryEdit& edit = now_.entries[now_.entry_at];
    INVARIANT(now_.entry_at == 0 || now_.entries[now_.entry_at - 1].cookie <= edit.cookie);
    for (; at < old_items.size() && old_items[at].key.offset < edit.cookie; ++at)
      TRY(out.put(old_items[at].key, old_items[at].value));
    if (at < old_items.size() && old_items[at].key.offset == edit.cookie) ++at;
    if (!edit.entry) continue;
    value.clear();
    format::encode_dirent({edit.entry->ino, edit.entry->type, edit.entry->name}, value);
    TRY(out.put(Key{now_.inode->ino, ItemKind::dirent, edit.cookie}, value));
  }
  for (; at < old_items.size(); ++at) TRY(out.put(old_items[at].key, old_items[at].value));
  return {};
}

Status DeltaEditor::edit_hashes(Items old_items, std::uint64_t last, tree::ItemSink& out) {
  std::size_t at = 0;
  format::Bytes value;
  while (now_.hash_at < now_.hashes.size() && now_.hashes[now_.hash_at].hash <= last) {
    const std::uint64_t hash = now_.hashes[now_.hash_at].hash;
    for (; at < old_items.size() && old_items[at].key.offset < hash; ++at)
      TRY(out.put(old_items[at].key, old_items[at].value));
    std::vector<std::uint64_t> cookies;
    if (at < old_items.size() && old_items[at].key.offset == hash)
      cookies = TRY(format::decode_cookies(old_items[at++].value));
    for (; now_.hash_at < now_.hashes.size() && now_.hashes[now_.hash_at].hash == hash; ++now_.hash_at) {
      std::erase(cookies, now_.hashes[now_.hash_at].cookie);
      if (now_.hashes[now_.hash_at].add) cookies.push_back(now_.hashes[now_.hash_at].cookie);
    }
    if (cookies.empty()) continue;
    value.clear();
    format::encode_cookies(cookies, value);
    TRY(out.put(Key{now_.inode->ino, ItemKind::name_hash, hash}, value));
  }
  for (; at < old_items.size(); ++at) TRY(out.put(old_items[at].key, old_items[at].value));
  return {};
}

Status DeltaEditor::load_xattr_blob() {
  now_.xattr_blob.clear();
  now_.xattr_loaded = true;
  std::vector<format::Xattr> xattrs;
  if (!now_.inode->created) {
    const format::Bytes old = TRY(load_blob(old_, source_, now_.inode->ino, ItemKind::xattr));
    if (!old.empty()) xattrs = TRY(format::decode_xattrs(old));
  }
  std::map<std::string, format::Bytes> merged;
  for (format::Xattr& x : xattrs) merged[x.name] = std::move(x.value);
  for (const auto& [name, value] : now_.inode->xattrs)
    if (value) merged[name] = *value;
    else merged.erase(name);
  xattrs.clear();
  for (auto& [name, value] : merged) xattrs.push_back({name, std::move(value)});
  if (!xattrs.empty()) format::encode_xattrs(xattrs, now_.xattr_blob);
  return {};
}

// All old pieces go, the new ones come: `last` may be between them.
Status DeltaEditor::edit_blob(ItemKind kind, Items, std::uint64_t last, tree::ItemSink& out) {
  INVARIANT(kind == ItemKind::xattr ? !now_.xattr_done : !now_.symlink_done);
  if (kind == ItemKind::xattr && !now_.xattr_loaded) TRY(load_xattr_blob());
  const format::Bytes& blob = kind == ItemKind::xattr ? now_.xattr_blob : now_.symlink_blob;
  std::uint64_t& piece = kind == ItemKind::xattr ? now_.xattr_piece : now_.symlink_piece;
  bool& done = kind == ItemKind::xattr ? now_.xattr_done : now_.symlink_done;
  for (; piece <= last && piece * kPiece < blob.size(); ++piece) {
    const auto part = std::span(blob).subspan(piece * kPiece, std::min(kPiece, blob.size() - piece * kPiece));
    TRY(out.put(Key{now_.inode->ino, kind, piece}, part));
  }
  if (last == kNoLimit) done = true;
  else piece = last + 1;
  return {};
}

Status DeltaEditor::edit_attributes(Items old_items, tree::ItemSink& out) {
  INVARIANT(!now_.attributes_done && !now_.inode->freed);
  format::Attributes attributes;
  std::uint64_t old_blocks = 0;
  if (!old_items.empty()) {
    attributes = TRY(format::decode_attributes(old_items[0].value));
    old_blocks = attributes.blocks;
  } else {
    if (!now_.inode->has_attributes)
      return Error(Errc::corrupt, fmt::format("inode {} has changes, but does not exist", now_.inode->ino));
    ++totals_.inodes;
  }
  if (now_.inode->has_attributes) attributes = now_.inode->attributes;
  if (attributes.flags & (FS_IMMUTABLE_FL | FS_APPEND_FL)) totals_.protected_files = true;
  attributes.blocks = static_cast<std::uint64_t>(static_cast<std::int64_t>(old_blocks) + now_.block_change);
  now_.inode->owned.merged = attributes.blocks;
  format::Bytes value;
  format::encode_attributes(attributes, value);
  now_.attributes_done = true;
  return out.put(Key{now_.inode->ino, ItemKind::attributes, 0}, value);
}

Status DeltaEditor::release_item(const ItemRef& item) {
  if (item.key.kind == ItemKind::attributes) --totals_.inodes;
  if (item.key.kind != ItemKind::extent || format::is_tail(item.value)) return {};
  return release(TRY(format::decode_extent(item.value)));
}

// Block by block where a cleaner may have moved some. What stands in the delta is the same block only if it has the same content from
// the same time.
Status DeltaEditor::release_replaced(const PlacedExtent& part) {
  const auto& [first, extent] = part;
  if (!tell_moves_ || extent.unwritten) return release(extent);
  std::uint64_t kept = 0;
  for (std::uint64_t i = 0; i < extent.length; ++i) {
    const tree::BlockEntry* entry = now_.inode->file->blocks.find(first + i);
    const bool is_same = entry && entry->place.moved() && entry->clock == extent.clock && entry->crc == extent.crcs[i];
    if (!is_same) continue;
    if (i > kept) TRY(release(part_of(part, first + kept, first + i).second));
    TRY(release(part_of(part, first + i, first + i + 1).second, entry->place.address()));
    kept = i + 1;
  }
  if (kept == extent.length) return {};
  return release(kept ? part_of(part, first + kept, first + extent.length).second : extent);
}

Status DeltaEditor::release(const format::Extent& extent, BlockAddr moved_to) {
  if (extent.unwritten) {
    totals_.reserved_blocks -= static_cast<std::int64_t>(extent.length);
    return {};
  }
  if (!old_.segments.contains(extent.address, extent.length))
    return Error(Errc::corrupt, fmt::format("inode {} has blocks {}+{}, which are in no segment; run fsck.varve", now_.inode->ino,
                                            extent.address, extent.length));
  totals_.data_blocks -= static_cast<std::int64_t>(extent.length);
  return released_(extent, moved_to);
}

}  // namespace varve::changes
