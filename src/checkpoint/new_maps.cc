#include "checkpoint/new_maps.h"

#include <algorithm>
#include <vector>

#include "base/invariant.h"
#include "base/logging.h"
#include "changes/delta.h"
#include "checkpoint/superblocks.h"
#include "device/faults.h"
#include "segments/segment_table.h"

namespace varve::checkpoint {

using format::Owner;
using format::TreeId;

NewMaps::NewMaps(const Parts& parts, std::optional<tree::DeadRuns> dead, std::size_t memory_bytes)
    : parts_(parts), memory_bytes_(memory_bytes), reverse_(parts.source, parts.old.reverse_map), free_(parts.source, parts.old.free_map),
      ledger_(parts.segments, free_, std::move(dead)) {
  reverse_.defer_leaves();  // blocks in holes may stand in as many leaves
  reverse_.replace_bad_nodes([this](BlockAddr address, const Error& why) { return lose_owners(address, why); });
}

Status NewMaps::reshape(const format::Superblock& super) {
  TRY(reverse_.reshape(format::reverse_map_shape(super.device_blocks), parts_.writer));
  return free_.reshape(format::free_map_shape(super.segments, super.segment_blocks), parts_.writer);
}

Status NewMaps::clear_from(SegmentId first) {
  cleared_from_ = parts_.segments.geometry().start_of(first);
  return reverse_.clear_from(cleared_from_.v, parts_.writer);
}

Status NewMaps::for_each_new_block(const std::function<Status(Ino, const tree::BlockEntry&)>& visit) const {
  for (const auto& inode : parts_.merged.inodes()) {
    if (inode->freed || !inode->file) continue;
    for (auto at = inode->file->blocks.lower_bound(0); at.valid(); at.next()) {
      INVARIANT(!at->place.is_pending());  // all payload was sealed before the freeze
      if (at->place.is_tail()) continue;
      TRY(visit(inode->ino, *at));
    }
  }
  return {};
}

// The owners of the blocks that live there matter only to a cleaner that wants to move them: they stay where they are, until a repair.
Status NewMaps::lose_owners(BlockAddr address, const Error& why) {
  if (!device_answers(parts_.device, parts_.old.reverse_map.shape.records)) return why;
  if (lost_nodes_++ == 0)
    log_error("{}: a part of the reverse map is lost ({}); what lives there cannot be moved until fsck.varve has been run",
                  parts_.device.name(), why.message());
  parts_.faults.note(why.code(), address, {});
  return {};
}

Status NewMaps::touch(BlockAddr address) {
  TRY(reverse_.touch(address.v));
  return ledger_.touch(address);
}

Status NewMaps::touch_evacuated(std::span<const Evacuees::MapNode> nodes) {
  for (const Evacuees::MapNode& node : nodes) {
    const std::uint64_t record[] = {node.record};
    if (node.tree == TreeId::reverse_map && cleared_from_ && node.record >= cleared_from_.v) continue;
    TRY((node.tree == TreeId::free_map ? free_ : reverse_).touch(record, node.level));
  }
  return {};
}

Status NewMaps::close(const Others& others) {
  TRY(for_each_new_block([&](Ino, const tree::BlockEntry& block) { return touch(block.place.address()); }));
  for (const tree::NodeWriter::Written& node : parts_.writer.written()) TRY(touch(node.address));
  for (const snapshots::HeldMove& move : others.arrived) TRY(touch(move.to));
  TRY(touch_evacuated(others.evacuated));
  if (others.former_image) TRY(ledger_.touch(others.former_image));
  return close_rest();
}

// Giving addresses to map nodes dirties more of the maps, until the set is closed (H20). It only grows, and consecutive
// addresses share leaves, so a few rounds are enough.
Status NewMaps::close_rest() {
  std::size_t released_seen = 0;
  for (bool grew = true; grew;) {
    std::vector<BlockAddr> given;
    auto note = [&](BlockAddr address, std::uint8_t) { given.push_back(address); };
    TRY(reverse_.assign(parts_.writer, note));
    TRY(free_.assign(parts_.writer, note));
    for (BlockAddr address : given) TRY(touch(address));
    for (; released_seen < parts_.writer.released().size(); ++released_seen) TRY(ledger_.touch(parts_.writer.released()[released_seen]));
    grew = !given.empty();
    if (grew || image_address_) continue;
    image_address_ = TRY(parts_.writer.allocate());  // last, as it is written last
    TRY(touch(image_address_));
    grew = true;
  }
  return {};
}

Status NewMaps::write(const Others& others, tree::TreeView& next) {
  TRY(write_reverse_leaves(others));
  next.reverse_map = TRY(reverse_.write(parts_.writer));
  next.free_map = TRY(free_.write(parts_.writer));
  return {};
}

// New blocks are known by file, not by address: each lot of leaves looks through all of them. Usually it is the only one.
Status NewMaps::write_reverse_leaves(const Others& others) {
  const std::uint64_t at_once = std::max<std::uint64_t>(memory_bytes_ / 16 / kBlockSize, 64);
  const std::size_t nodes = parts_.writer.written().size();  // of the inode file
  for (std::uint64_t first = 0, end = 0; (end = reverse_.end_of_leaves(first, at_once)) != first; first = end) {
    TRY(reverse_.load_leaves(first, end));
    TRY(fill_reverse_map(others, {BlockAddr{first}, BlockAddr{end}}, nodes));
    TRY(reverse_.write_leaves(parts_.writer));
  }
  return {};
}

Status NewMaps::fill_reverse_map(const Others& others, const Lot& lot, std::size_t nodes) {
  auto put = [&](BlockAddr address, const format::ReverseEntry& entry) {
    if (!lot.contains(address)) return;
    const auto record = reverse_.record(address.v);
    MEMORY_INVARIANT(record.size() == format::kReverseEntryBytes);
    format::encode_reverse_entry(entry, record);
  };
  TRY(for_each_new_block([&](Ino ino, const tree::BlockEntry& block) {
    if (!lot.contains(block.place.address())) return Status();
    format::ReverseEntry entry;
    entry.owner = Owner::file_block;
    entry.ino = ino;
    entry.block = block.block;
    entry.clock = block.clock;
    entry.estimate = block.place.estimate();
    entry.crc = block.crc;
    put(block.place.address(), entry);
    return Status();
  }));
  auto node_entry = [](TreeId tree, std::uint8_t level) {
    format::ReverseEntry entry;
    entry.owner = Owner::node;
    entry.tree = tree;
    entry.level = level;
    return entry;
  };
  for (const tree::NodeWriter::Written& node : std::span(parts_.writer.written()).first(nodes))
    put(node.address, node_entry(node.tree, node.level));
  for (const snapshots::HeldMove& move : others.arrived) put(move.to, move.owner);
  auto put_map = [&](TreeId tree) {
    return [&, tree](BlockAddr address, std::uint8_t level) { put(address, node_entry(tree, level)); };
  };
  reverse_.for_each_address(put_map(TreeId::reverse_map));
  free_.for_each_address(put_map(TreeId::free_map));
  format::ReverseEntry image;
  image.owner = Owner::super_image;
  put(image_address_, image);
  return {};
}

Result<tree::SegmentLedger::Changed> NewMaps::fill_free_map(const Others& others, std::uint64_t generation) {
  for (BlockAddr address : parts_.writer.released()) TRY(ledger_.release(address));
  if (others.former_image) TRY(ledger_.release(others.former_image));
  TRY(for_each_new_block([&](Ino, const tree::BlockEntry& block) { return ledger_.claim(block); }));
  for (const tree::NodeWriter::Written& node : parts_.writer.written()) TRY(ledger_.claim(node.address));
  for (const snapshots::HeldMove& move : others.arrived) TRY(ledger_.claim_held(move.to, move.owner));
  Status status;
  auto claim = [&](BlockAddr address, std::uint8_t) {
    if (status.ok()) status = ledger_.claim(address);
  };
  reverse_.for_each_address(claim);
  free_.for_each_address(claim);
  TRY(std::move(status));
  TRY(ledger_.claim(image_address_));
  return ledger_.finish(generation);
}

}  // namespace varve::checkpoint
