#include "changes/layers.h"

#include "snapshots/places.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <fmt/format.h>

namespace varve::changes {

using format::ItemKind;
using format::Key;

Layers layers_of(const Inode& inode, const tree::TreeView& view) {
  Layers layers;
  for (const InodeDelta* delta : {inode.active, inode.frozen}) {
    if (!delta || delta->generation <= view.generation) continue;
    layers.deltas[layers.count++] = delta;
    if (delta->created) {
      layers.tree = false;
      break;
    }
  }
  return layers;
}

Status load_attributes(Inode& inode, const tree::TreeView& view, tree::NodeSource& source) {
  if (inode.loaded) return {};
  const Layers layers = layers_of(inode, view);
  for (unsigned i = 0; i < layers.count; ++i) {
    if (!layers.deltas[i]->has_attributes && !layers.deltas[i]->freed) continue;
    inode.missing = layers.deltas[i]->freed;
    inode.attributes = layers.deltas[i]->attributes;
    inode.attributes.blocks = 0;
    if (layers.tree && !inode.missing) {
      if (auto item = TRY(tree::find_item(source, view.inode_file, Key{inode.ino, ItemKind::attributes, 0})))
        inode.attributes.blocks = TRY(format::decode_attributes(item->value)).blocks;
    }
    inode.loaded = true;
    return {};
  }
  auto item = TRY(tree::find_item(source, view.inode_file, Key{inode.ino, ItemKind::attributes, 0}));
  inode.missing = !item || inode.ino == format::kOrphanIno;
  if (!inode.missing) inode.attributes = TRY(format::decode_attributes(item->value));
  inode.loaded = true;
  return {};
}

std::uint64_t block_count(const Inode& inode, const tree::TreeView& view) {
  std::int64_t count = static_cast<std::int64_t>(inode.attributes.blocks);
  for (const InodeDelta* delta : {inode.frozen, inode.active}) {
    if (!delta) continue;
    if (delta->generation > view.generation)
      count = (delta->owned.emptied ? 0 : count) + delta->owned.change;
    else if (delta->owned.merged)
      count = static_cast<std::int64_t>(*delta->owned.merged);
  }
  return count < 0 ? 0 : static_cast<std::uint64_t>(count);
}

namespace {

void fill_from(const InodeDelta& delta, std::uint64_t first, std::span<MappedBlock> out) {
  if (!delta.file) return;
  const std::uint64_t end = first + out.size();
  for (auto at = delta.file->blocks.lower_bound(first); at.valid() && at->block < end; at.next()) {
    MappedBlock& mapped = out[at->block - first];
    if (mapped.kind != MappedBlock::Kind::unknown) continue;
    mapped.crc = at->crc;
    mapped.clock = at->clock;
    mapped.estimate = at->place.estimate();
    if (at->place.is_tail()) {
      mapped.kind = MappedBlock::Kind::tail;
      mapped.tail = delta.file->tails.at(at->block);
    } else if (at->place.is_pending()) {
      mapped.kind = MappedBlock::Kind::pending;
      mapped.pending = at->place.pending_block();
    } else {
      mapped.kind = MappedBlock::Kind::device;
      mapped.address = at->place.address();
    }
  }
  for (std::uint64_t block = first; block < end;) {
    const auto range = delta.file->cleared.first_after(block);
    if (!range || range->from >= end) return;
    for (block = std::max(block, range->from); block < std::min(end, range->to); ++block) {
      MappedBlock& mapped = out[block - first];
      if (mapped.kind == MappedBlock::Kind::unknown)
        mapped.kind = range->kind == tree::Cleared::hole ? MappedBlock::Kind::hole : MappedBlock::Kind::unwritten;
    }
  }
}

bool any_unknown(std::span<const MappedBlock> blocks) {
  return std::any_of(blocks.begin(), blocks.end(),
                     [](const MappedBlock& b) { return b.kind == MappedBlock::Kind::unknown; });
}

}  // namespace

void copy_tail(const format::Bytes& tail, std::size_t from, std::span<std::byte> out) {
  const std::size_t there = from < tail.size() ? std::min(out.size(), tail.size() - from) : 0;
  if (there) std::memcpy(out.data(), tail.data() + from, there);
  if (there < out.size()) std::memset(out.data() + there, 0, out.size() - there);
}

Result<format::Extent> decode_placed(std::span<const std::byte> value, const segments::SegmentGeometry& segments) {
  format::Extent extent = TRY(format::decode_extent(value));
  if (extent.unwritten || segments.contains(extent.address, extent.length)) return extent;
  return Error(Errc::corrupt, fmt::format("extent: blocks {}+{} are in no segment", extent.address, extent.length));
}

// Of blocks that an old tree names, those that were moved since.
static Status find_places(const tree::TreeView& view, tree::NodeSource& source, const std::vector<bool>& known,
                          std::span<MappedBlock> out) {
  const auto is_named = [&](std::size_t i) { return !known[i] && out[i].kind == MappedBlock::Kind::device; };
  segments::SegmentGeometry segments = view.segments;
  segments.count = view.free_map.shape.records;
  for (std::size_t i = 0, end = 0; i < out.size(); i = end) {
    end = i + 1;
    if (!is_named(i)) continue;
    const BlockAddr first = out[i].address;
    while (end < out.size() && is_named(end) && out[end].address == first + (end - i)) ++end;
    for (const auto& [named, place] : TRY(snapshots::moved_since(source, view.snapshot_tree(), first, end - i, view.kept)))
      out[i + (named - first)].address = place;
    for (std::size_t at = i; at < end; ++at)
      if (!segments.contains(out[at].address))
        return Error(Errc::corrupt, fmt::format("block {} of a snapshot is behind the end of the filesystem", out[at].address));
  }
  return {};
}

Status resolve_in_tree(Ino ino, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t first,
                       std::span<MappedBlock> out, unsigned leaves_ahead) {
  if (!any_unknown(out)) return {};
  tree::Cursor cursor(source, view.inode_file);
  TRY(cursor.seek_floor(Key{ino, ItemKind::extent, first}));
  if (leaves_ahead) cursor.prefetch_leaves(leaves_ahead);
  std::vector<bool> known;
  if (view.kept)
    for (const MappedBlock& mapped : out) known.push_back(mapped.kind != MappedBlock::Kind::unknown);
  TRY(resolve_at(cursor, view.segments, ino, first, out));
  return view.kept ? find_places(view, source, known, out) : Status();
}

static Status resolve_tail(std::uint64_t block, std::span<const std::byte> value, std::uint64_t first, std::span<MappedBlock> out) {
  const auto bytes = TRY(format::decode_tail(value));
  if (block < first || out[block - first].kind != MappedBlock::Kind::unknown) return {};
  MappedBlock& mapped = out[block - first];
  mapped.kind = MappedBlock::Kind::tail;
  mapped.tail = std::make_shared<const format::Bytes>(bytes.begin(), bytes.end());
  return {};
}

Status resolve_at(tree::Cursor& cursor, const segments::SegmentGeometry& segments, Ino ino, std::uint64_t first,
                  std::span<MappedBlock> out) {
  const std::uint64_t end = first + out.size();
  for (; cursor.valid(); TRY(cursor.next())) {
    const Key& key = cursor.key();
    if (key < Key{ino, ItemKind::extent, 0}) continue;
    if (key.ino != ino || key.kind != ItemKind::extent || key.offset >= end) break;
    if (format::is_tail(cursor.value())) {
      TRY(resolve_tail(key.offset, cursor.value(), first, out));
      if (key.offset + 1 == end) break;  // the next item may be in another leaf
      continue;
    }
    const format::Extent extent = TRY(decode_placed(cursor.value(), segments));
    const std::uint64_t from = std::max(first, key.offset);
    const std::uint64_t to = std::min(end, key.offset + extent.length);
    for (std::uint64_t block = from; block < to; ++block) {
      MappedBlock& mapped = out[block - first];
      if (mapped.kind != MappedBlock::Kind::unknown) continue;
      if (extent.unwritten) {
        mapped.kind = MappedBlock::Kind::unwritten;
        continue;
      }
      mapped.kind = MappedBlock::Kind::device;
      mapped.address = extent.address + (block - key.offset);
      mapped.crc = extent.crcs[block - key.offset];
      mapped.clock = extent.clock;
      mapped.estimate = extent.estimate;
    }
    if (to == end) break;  // likewise
  }
  return {};
}

void resolve_in_deltas(const Layers& layers, std::uint64_t first, std::span<MappedBlock> out) {
  for (unsigned i = 0; i < layers.count; ++i) fill_from(*layers.deltas[i], first, out);
  if (layers.tree) return;
  for (MappedBlock& mapped : out)
    if (mapped.kind == MappedBlock::Kind::unknown) mapped.kind = MappedBlock::Kind::hole;
}

Status resolve_blocks(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t first,
                      std::span<MappedBlock> out, unsigned leaves_ahead) {
  resolve_in_deltas(layers_of(inode, view), first, out);
  TRY(resolve_in_tree(inode.ino, view, source, first, out, leaves_ahead));
  for (MappedBlock& mapped : out)
    if (mapped.kind == MappedBlock::Kind::unknown) mapped.kind = MappedBlock::Kind::hole;
  return {};
}

Result<std::uint64_t> count_owned(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t from,
                                  std::uint64_t to) {
  OwnedSoFar so_far{from, 0};
  TRY(count_owned_on(inode, view, source, so_far, to, ~0ULL));
  return so_far.owned;
}

// Walks from change to change; between them only the tree counts, by its sums.
Status count_owned_on(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source, OwnedSoFar& so_far, std::uint64_t to,
                      std::uint64_t most_steps) {
  const Layers layers = layers_of(inode, view);
  for (std::uint64_t& at = so_far.at; at < to;) {
    if (most_steps-- == 0) return Errc::would_block;
    std::array<MappedBlock, 1> here{};
    resolve_in_deltas(layers, at, here);
    std::uint64_t next = to;
    for (unsigned i = 0; i < layers.count; ++i) {
      const FileDelta* file = layers.deltas[i]->file.get();
      if (!file) continue;
      if (auto entry = file->blocks.lower_bound(at + 1); entry.valid()) next = std::min(next, entry->block);
      if (file->blocks.find(at)) next = std::min(next, at + 1);
      if (auto range = file->cleared.first_after(at)) next = std::min(next, range->from > at ? range->from : range->to);
    }
    switch (here[0].kind) {
      case MappedBlock::Kind::unknown:
        so_far.owned += TRY(tree::count_blocks(source, view.inode_file, inode.ino, at, next));
        break;
      case MappedBlock::Kind::hole:
      case MappedBlock::Kind::tail:
        break;
      default:
        so_far.owned += next - at;
    }
    at = next;
  }
  return {};
}

// --- directories ------------------------------------------------------------------------------------------------------

namespace {

bool removed_above(const Layers& layers, unsigned layer, std::uint64_t cookie) {
  for (unsigned i = 0; i < layer; ++i)
    if (layers.deltas[i]->directory && layers.deltas[i]->directory->removed.contains(cookie)) return true;
  return false;
}

// What deltas have of a directory, in the order of cookies: an entry that was replaced has an old one.
class AddedInOrder {
 public:
  using Entries = std::map<std::uint64_t, AddedEntry>;

  AddedInOrder(const Layers& layers, std::uint64_t after) : layers_(layers) {
    for (unsigned i = 0; i < layers.count; ++i)
      if (const DirectoryDelta* delta = layers.deltas[i]->directory.get()) rest_[i] = {delta->added.upper_bound(after), delta->added.end()};
  }

  // The next one, of those with a cookie below `bound` if there is a bound. Null: there is none.
  const Entries::value_type* next(std::optional<std::uint64_t> bound) {
    for (;;) {
      unsigned first = layers_.count;
      for (unsigned i = 0; i < layers_.count; ++i)
        if (!rest_[i].is_over() && (first == layers_.count || rest_[i].at->first < rest_[first].at->first)) first = i;
      if (first == layers_.count || (bound && rest_[first].at->first >= *bound)) return nullptr;
      const Entries::value_type& entry = *rest_[first].at++;
      if (!removed_above(layers_, first, entry.first)) return &entry;
    }
  }

 private:
  struct Rest {
    Entries::const_iterator at{}, end{};
    bool is_over() const { return at == end; }
  };

  const Layers& layers_;
  std::array<Rest, 2> rest_{};  // of each layer
};

}  // namespace

Result<std::optional<FoundEntry>> find_entry(const Inode& directory, const tree::TreeView& view, tree::NodeSource& source,
                                             const HashKey& key, std::string_view name) {
  const Layers layers = layers_of(directory, view);
  for (unsigned i = 0; i < layers.count; ++i) {
    const DirectoryDelta* delta = layers.deltas[i]->directory.get();
    if (!delta) continue;
    auto found = delta->by_name.find(name);
    if (found == delta->by_name.end() || removed_above(layers, i, found->second)) continue;
    const AddedEntry& entry = delta->added.at(found->second);
    return std::optional(FoundEntry{entry.ino, entry.type, found->second});
  }
  if (!layers.tree) return std::optional<FoundEntry>();
  const Key hash{directory.ino, ItemKind::name_hash, format::name_hash(name, key)};
  auto hashed = TRY(tree::find_item(source, view.inode_file, hash));
  if (!hashed) return std::optional<FoundEntry>();
  for (std::uint64_t cookie : TRY(format::decode_cookies(hashed->value))) {
    if (removed_above(layers, layers.count, cookie)) continue;
    auto item = TRY(tree::find_item(source, view.inode_file, Key{directory.ino, ItemKind::dirent, cookie}));
    if (!item)
      return Error(Errc::corrupt, fmt::format("directory {}: the name index points to entry {}, which is not there",
                                              directory.ino, cookie));
    const format::Dirent entry = TRY(format::decode_dirent(item->value));
    if (entry.name == name) return std::optional(FoundEntry{entry.ino, entry.type, cookie});
  }
  return std::optional<FoundEntry>();
}

Status scan_entries(const Inode& directory, const tree::TreeView& view, tree::NodeSource& source, std::uint64_t after,
                    const std::function<Result<bool>(std::uint64_t, Ino, std::uint8_t, std::string_view)>& visit) {
  const Layers layers = layers_of(directory, view);
  AddedInOrder added(layers, after);
  const auto visit_added = [&](std::optional<std::uint64_t> bound) -> Result<bool> {
    while (const auto* entry = added.next(bound))
      if (!TRY(visit(entry->first, entry->second.ino, entry->second.type, entry->second.name))) return false;
    return true;
  };
  if (layers.tree) {
    tree::Cursor cursor(source, view.inode_file);
    TRY(cursor.seek(Key{directory.ino, ItemKind::dirent, after + 1}));
    for (; cursor.valid(); TRY(cursor.next())) {
      const Key key = cursor.key();
      if (key.ino != directory.ino || key.kind != ItemKind::dirent) break;
      if (removed_above(layers, layers.count, key.offset)) continue;
      if (!TRY(visit_added(key.offset))) return {};
      const format::Dirent entry = TRY(format::decode_dirent(cursor.value()));
      if (!TRY(visit(key.offset, entry.ino, entry.type, entry.name))) return {};
    }
  }
  TRY(visit_added(std::nullopt));
  return {};
}

// --- blobs ---------------------------------------------------------------------------------------------------------------

Result<format::Bytes> load_blob(const tree::TreeView& view, tree::NodeSource& source, Ino ino, ItemKind kind) {
  format::Bytes blob;
  tree::Cursor cursor(source, view.inode_file);
  TRY(cursor.seek(Key{ino, kind, 0}));
  for (std::uint64_t piece = 0; cursor.valid(); ++piece, TRY(cursor.next())) {
    if (cursor.key() != Key{ino, kind, piece}) break;
    blob.insert(blob.end(), cursor.value().begin(), cursor.value().end());
  }
  return blob;
}

Result<std::vector<format::Xattr>> load_xattrs(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source) {
  std::vector<format::Xattr> xattrs;
  if (inode.no_xattrs.load(std::memory_order_relaxed)) return xattrs;
  const Layers layers = layers_of(inode, view);
  if (layers.tree) {
    const format::Bytes blob = TRY(load_blob(view, source, inode.ino, ItemKind::xattr));
    if (!blob.empty()) xattrs = TRY(format::decode_xattrs(blob));
  }
  for (unsigned i = layers.count; i-- > 0;)
    for (const auto& [name, value] : layers.deltas[i]->xattrs) {
      auto at = std::lower_bound(xattrs.begin(), xattrs.end(), name,
                                 [](const format::Xattr& x, const std::string& n) { return x.name < n; });
      const bool there = at != xattrs.end() && at->name == name;
      if (there && value) at->value = *value;
      if (there && !value) xattrs.erase(at);
      if (!there && value) xattrs.insert(at, format::Xattr{name, *value});
    }
  if (xattrs.empty()) inode.no_xattrs.store(true, std::memory_order_relaxed);
  return xattrs;
}

Result<std::string> load_symlink(const Inode& inode, const tree::TreeView& view, tree::NodeSource& source) {
  const Layers layers = layers_of(inode, view);
  for (unsigned i = 0; i < layers.count; ++i)
    if (layers.deltas[i]->symlink) return *layers.deltas[i]->symlink;
  const format::Bytes blob = TRY(load_blob(view, source, inode.ino, ItemKind::symlink));
  return std::string(reinterpret_cast<const char*>(blob.data()), blob.size());
}

}  // namespace varve::changes
