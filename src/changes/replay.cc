#include "changes/replay.h"

#include <fmt/format.h>

#include "changes/layers.h"
#include "changes/staging.h"
#include "tree/trees.h"

namespace varve::changes {

Status Replay::apply(const format::Chunk& chunk) {
  const auto& header = chunk.header;
  if (!parts_.segments.geometry().contains(header.address, header.total_blocks()))
    return Error(Errc::corrupt, fmt::format("chunk {} of the log is at block {}, which is in no segment", header.lsn, header.address));
  occupy(chunk.header.address);
  return format::decode_records(chunk.records, [this](const format::Record& record) { return apply_record(record); });
}

Status Replay::apply_record(const format::Record& record) {
  delta_.count(1, 64);
  return std::visit([this](const auto& r) { return on(r); }, record);
}

void Replay::count() {
  tree::BlockingSource source = parts_.trees.source();
  for (const auto& [ino, delta] : inodes_) {
    if (count(*delta, source).ok() || !delta->file || delta->freed) continue;
    // Never too few: as if none of them replaced what the tree has, which cannot be read.
    delta->owned.change = static_cast<std::int64_t>(delta->file->blocks.size());
    const tree::RangeMap& cleared = delta->file->cleared;
    for (auto range = cleared.first_after(0); range; range = cleared.first_after(range->to))
      if (range->kind == tree::Cleared::unwritten) delta->owned.change += static_cast<std::int64_t>(range->to - range->from);
    delta_.data_change += delta->owned.change;
  }
}

void Replay::give_blocks_to_tails(Staging& staging, std::uint32_t clock) {
  for (const auto& [ino, delta] : inodes_) {
    if (!delta->file) continue;
    std::vector<std::uint64_t> longer;
    for (const auto& [block, bytes] : delta->file->tails)
      if (bytes->size() > format::kMaxTail) longer.push_back(block);
    for (const std::uint64_t block : longer) staging.give_block(*delta, block, clock);
  }
}

Status Replay::drop_lost_inodes() {
  tree::BlockingSource source = parts_.trees.source();
  for (const auto& [ino, delta] : inodes_) {
    if (delta->has_attributes || delta->freed) continue;
    const format::Key key{ino, format::ItemKind::attributes, 0};
    if (!TRY(tree::find_item(source, parts_.trees.own_view().inode_file, key))) TRY(on(format::FreeInode{ino}));
  }
  return {};
}

Status Replay::count(InodeDelta& delta, tree::NodeSource& source) {
  const tree::TreeView& view = parts_.trees.own_view();
  const auto item = TRY(tree::find_item(source, view.inode_file, format::Key{delta.ino, format::ItemKind::attributes, 0}));
  const std::uint64_t before = item ? TRY(format::decode_attributes(item->value)).blocks : 0;
  std::uint64_t now = delta.freed ? 0 : before;
  if (delta.file && !delta.freed) {
    delta.inode->assume_locked();  // before there are other threads
    now = TRY(count_owned(*delta.inode, view, source, 0, format::kMaxFileBlocks));
  }
  const std::int64_t change = static_cast<std::int64_t>(now) - static_cast<std::int64_t>(before);
  if (!delta.freed) delta.owned.change = change;
  delta_.data_change += change;
  const bool there = !delta.freed && (item || delta.has_attributes);
  delta_.inode_change += int{there} - int{item.has_value()};
  std::uint64_t blobs = delta.symlink ? delta.symlink->size() : 0;
  for (const auto& [name, value] : delta.xattrs) blobs += name.size() + (value ? value->size() : 0);
  if (!delta.freed) delta_.blob_bytes += blobs;
  return {};
}

InodeDelta& Replay::inode(Ino ino) {
  InodeDelta*& slot = inodes_[ino];
  if (!slot) {
    slot = &delta_.add(ino);
    slot->sealed_once = true;
    InodePtr object = parts_.inodes.get(ino);
    object->assume_locked();  // before there are other threads
    object->active = slot;
    slot->inode = object.get();
  }
  return *slot;
}

// The replay range may not be written again before a checkpoint has settled (H28).
void Replay::occupy(BlockAddr address) {
  parts_.segments.occupy(parts_.segments.geometry().segment_of(address));
}

void Replay::drop(FileDelta& file, const tree::BlockEntry& entry) {
  if (entry.place.is_tail()) file.tails.erase(entry.block);
  else parts_.segments.sub_live(entry.place.address(), 1);
}

Status Replay::on(const format::SetAttributes& r) {
  InodeDelta& delta = inode(r.ino);
  delta.attributes = r.attributes;
  delta.has_attributes = true;
  return {};
}

Status Replay::on(const format::FreeInode& r) {
  InodeDelta& delta = inode(r.ino);
  if (delta.file) delta.file->blocks.erase_range(0, ~0ULL, [&](const tree::BlockEntry& entry) { drop(*delta.file, entry); });
  delta.file.reset();
  delta.directory.reset();
  delta.xattrs.clear();
  delta.symlink.reset();
  delta.orphan = false;
  delta.freed = true;
  return {};
}

Status Replay::on(const format::SetOrphan& r) {
  inode(r.ino).orphan = true;
  return {};
}

Status Replay::on(const format::ClearOrphan& r) {
  inode(r.ino).orphan = false;
  return {};
}

Status Replay::on(const format::SetDirent& r) {
  inode(r.directory).directory_delta().add(r.cookie, AddedEntry{r.entry.ino, r.entry.type, std::string(r.entry.name)});
  return {};
}

Status Replay::on(const format::DeleteDirent& r) {
  inode(r.directory).directory_delta().remove(r.cookie, r.name, true);
  return {};
}

Status Replay::on(const format::SetXattr& r) {
  inode(r.ino).xattrs[std::string(r.name)] = format::Bytes(r.value.begin(), r.value.end());
  return {};
}

Status Replay::on(const format::DeleteXattr& r) {
  inode(r.ino).xattrs[std::string(r.name)] = std::nullopt;
  return {};
}

Status Replay::on(const format::SetSymlink& r) {
  inode(r.ino).symlink = std::string(r.target);
  return {};
}

Status Replay::on(const format::MapBlocks& r) {
  const auto& geometry = parts_.segments.geometry();
  if (!geometry.contains(r.address, r.crcs.size()))
    return Error(Errc::corrupt, fmt::format("the log maps a block of inode {} to {}, which is in no segment", r.ino, r.address));
  InodeDelta& delta = inode(r.ino);
  for (std::size_t i = 0; i < r.crcs.size(); ++i) {
    const std::size_t before = delta.file_delta().blocks.size();
    tree::BlockEntry& entry = delta.file_delta().blocks.insert(r.first + i);
    if (delta.file->blocks.size() == before) drop(*delta.file, entry);
    entry.place = tree::BlockPlace::at(r.address + i);
    entry.place.set_estimate(r.estimate);
    entry.place.set_moved(r.moved);
    entry.crc = r.crcs[i];
    entry.clock = r.clock;
    if (i == 0 || geometry.index_of(r.address + i) == 0) occupy(r.address + i);  // a run may cross segments
    parts_.segments.add_live(r.address + i, 1, r.clock);
  }
  delta_.count(r.crcs.size(), r.crcs.size() * 36);
  return {};
}

Status Replay::on(const format::ClearRange& r) {
  FileDelta& file = inode(r.ino).file_delta();
  file.blocks.erase_range(r.from, r.to, [&](const tree::BlockEntry& entry) { drop(file, entry); });
  file.cleared.set(r.from, r.to, r.unwritten ? tree::Cleared::unwritten : tree::Cleared::hole);
  return {};
}

Status Replay::on(const format::SetTail& r) {
  if (!parts_.trees.own_view().has_tails)
    return Error(Errc::corrupt, fmt::format("the log has a tail of inode {}, of which the superblock does not tell", r.ino));
  FileDelta& file = inode(r.ino).file_delta();
  const std::size_t before = file.blocks.size();
  tree::BlockEntry& entry = file.blocks.insert(r.block);
  if (file.blocks.size() == before) drop(file, entry);
  entry.place = tree::BlockPlace::tail();
  file.tails.insert_or_assign(r.block, std::make_shared<const format::Bytes>(r.bytes.begin(), r.bytes.end()));
  delta_.count(1, r.bytes.size());
  return {};
}

}  // namespace varve::changes
