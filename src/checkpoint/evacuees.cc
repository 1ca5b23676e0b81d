#include "checkpoint/evacuees.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/logging.h"
#include "device/faults.h"
#include "format/map_record.h"
#include "io/sparse_read.h"
#include "space/holes.h"
#include "tree/trees.h"

namespace varve::checkpoint {

using format::NodeHeader;
using format::NodeRef;
using format::TreeId;

Status Evacuees::find() {
  for (SegmentId segment : segments_) TRY(look_at(TRY(nodes_in(segment))));
  std::ranges::sort(of_inode_file_);
  std::ranges::sort(of_snapshots_);
  return {};
}

Result<std::vector<Evacuees::Suspect>> Evacuees::nodes_in(SegmentId segment) {
  const auto& geometry = parts_.segments.geometry();
  const auto live = TRY(space::live_bits(parts_.source, parts_.trees.own_view(), geometry, segment));
  const tree::MapRoot& owners = parts_.trees.own_view().reverse_map;
  std::vector<Suspect> nodes;
  for (std::uint32_t i = 0; i < geometry.blocks; ++i) {
    if (!live[i]) continue;
    const BlockAddr address = geometry.start_of(segment) + i;
    const auto leaf = tree::find_map_leaf(parts_.source, owners, address.v);
    if (!leaf.ok() && tree::is_of_one_node(leaf.error())) {  // the merge goes on without it, and what it tells of stays where it is
      parts_.faults.note(leaf.error().code(), {}, {});
      i += static_cast<std::uint32_t>(owners.shape.per_leaf() - 1 - address.v % owners.shape.per_leaf());
      continue;
    }
    if (!leaf.ok()) return leaf.error();
    if (!*leaf) continue;
    const auto entry = TRY(format::decode_reverse_entry(
        (*leaf)->records().subspan((address.v % owners.shape.per_leaf()) * format::kReverseEntryBytes, format::kReverseEntryBytes)));
    if (entry.owner == format::Owner::node) nodes.push_back({address, entry.tree});
  }
  return nodes;
}

// Many by one request: there may be a segment full of them, and an operation may wait for the room that it makes. With what lies between
// them it is twice the memory, beside the cleaner's own.
Status Evacuees::look_at(std::span<const Suspect> nodes) {
  const std::size_t at_once = std::clamp<std::size_t>(parts_.memory_bytes / 256 / kBlockSize, 16, 256);
  for (std::size_t at = 0; at < nodes.size(); at += at_once) TRY(read_and_note(nodes.subspan(at, std::min(at_once, nodes.size() - at))));
  return {};
}

Status Evacuees::read_and_note(std::span<const Suspect> nodes) {
  std::vector<BlockAddr> addresses;
  for (const Suspect& node : nodes) addresses.push_back(node.address);
  io::SparseRead read(std::move(addresses));
  if (Status status = read.run(batch_); status.fails_with(Errc::no_memory)) return status;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Status noted = read.failed(i) ? Status(Error(Errc::io, fmt::format("node at block {} cannot be read", nodes[i].address)))
                                        : note(nodes[i], {read.block(i), kBlockSize});
    if (!noted.ok()) stuck_.emplace(nodes[i].address, noted.error());
  }
  return {};
}

Status Evacuees::note(const Suspect& node, std::span<const std::byte> block) {
  const NodeHeader header = TRY(format::decode_node_header(block));
  if (header.tree != node.tree) return Error(Errc::corrupt, fmt::format("node at block {}: belongs to another tree", node.address));
  const NodeRef ref = TRY(reference_to(header));
  if (ref.address != node.address) {
    if (node.tree == TreeId::inode_file && parts_.trees.own_view().tables.root) old_.insert(node.address);
    return Error(Errc::corrupt, fmt::format("node at block {}: no tree refers to it", node.address));
  }
  TRY(format::check_node(block, {parts_.identity, node.address, ref.crc, node.tree, header.level}));
  if (header.tree == TreeId::inode_file) of_inode_file_.push_back({header.first, header.level});
  else if (header.tree == TreeId::snapshots) of_snapshots_.push_back({header.first, header.level});
  else of_maps_.push_back({header.tree, header.first.offset, header.level});
  return {};
}

// What the tree says of the node that stands where this one says that it does.
Result<NodeRef> Evacuees::reference_to(const NodeHeader& header) const {
  const tree::TreeView& view = parts_.trees.own_view();
  if (header.tree == TreeId::inode_file) return tree::find_node(parts_.source, view.inode_file, header.first, header.level);
  if (header.tree == TreeId::snapshots) return tree::find_node(parts_.source, view.snapshot_tree(), header.first, header.level);
  const tree::MapRoot& map = header.tree == TreeId::free_map ? view.free_map : view.reverse_map;
  return tree::find_map_node(parts_.source, map, header.first.offset, header.level);
}

bool Evacuees::has(BlockAddr address) const {
  if (stuck_.contains(address)) return false;
  return std::ranges::find(segments_, parts_.segments.geometry().segment_of(address)) != segments_.end();
}

void Evacuees::report_stuck() const {
  const auto first = std::ranges::find_if(stuck_, [this](const auto& stuck) { return !old_.contains(stuck.first); });
  if (first == stuck_.end()) return;
  const auto& [address, error] = *first;
  log_error("{}: {} cannot be moved; the first at block {}: {}", parts_.device.name(), counted(stuck_.size() - old_.size(), "node"),
                address, error.message());
  parts_.faults.note(error.code(), address, {});
}

}  // namespace varve::checkpoint
