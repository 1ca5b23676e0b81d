#include "store/evacuees.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "format/map_record.h"
#include "store/holes.h"

namespace varve::store {

using format::NodeHeader;
using format::NodeRef;
using format::TreeId;

Status Evacuees::find() {
  const auto& geometry = store_.segments().geometry();
  for (SegmentId segment : segments_) {
    const auto live = TRY(live_bits(source_, store_.trees().own_view(), geometry, segment));
    for (std::uint32_t i = 0; i < geometry.blocks; ++i)
      if (live[i]) TRY(look_at(geometry.start_of(segment) + i));
  }
  std::ranges::sort(of_inode_file_);
  std::ranges::sort(of_snapshots_);
  return {};
}

Status Evacuees::look_at(BlockAddr address) {
  const MapRoot& owners = store_.trees().own_view().reverse_map;
  const NodePtr leaf = TRY(find_map_leaf(source_, owners, address.v));
  if (!leaf) return {};
  const auto entry = TRY(format::decode_reverse_entry(
      leaf->records().subspan((address.v % owners.shape.per_leaf()) * format::kReverseEntryBytes, format::kReverseEntryBytes)));
  if (entry.owner != format::Owner::node) return {};
  const auto node = read(address, entry.tree);
  if (!node.ok()) {
    if (!may_be_old(entry.tree)) stuck_.emplace(address, node.error());
  } else if (node->tree == TreeId::inode_file) {
    of_inode_file_.push_back({node->first, node->level});
  } else if (node->tree == TreeId::snapshots) {
    of_snapshots_.push_back({node->first, node->level});
  } else {
    of_maps_.push_back({node->tree, node->first.offset, node->level});
  }
  return {};
}

// Then the cleaner has moved it, or says what is wrong with it.
bool Evacuees::may_be_old(TreeId tree) const { return tree == TreeId::inode_file && store_.trees().own_view().tables.root; }

Result<NodeHeader> Evacuees::read(BlockAddr address, TreeId tree) const {
  AlignedBuffer block(kBlockSize);
  TRY(store_.device().read(address.v << kBlockShift, block.span()));
  const NodeHeader header = TRY(format::decode_node_header(block.span()));
  if (header.tree != tree) return Error(Errc::corrupt, fmt::format("node at block {}: belongs to another tree", address));
  const NodeRef ref = TRY(reference_to(header));
  if (ref.address != address) return Error(Errc::corrupt, fmt::format("node at block {}: no tree refers to it", address));
  return format::check_node(block.span(), {store_.super().identity, address, ref.crc, tree, header.level});
}

// What the tree says of the node that stands where this one says that it does.
Result<NodeRef> Evacuees::reference_to(const NodeHeader& header) const {
  const TreeView& view = store_.trees().own_view();
  if (header.tree == TreeId::inode_file) return find_node(source_, view.inode_file, header.first, header.level);
  if (header.tree == TreeId::snapshots) return find_node(source_, view.snapshot_tree(), header.first, header.level);
  return find_map_node(source_, header.tree == TreeId::free_map ? view.free_map : view.reverse_map, header.first.offset, header.level);
}

bool Evacuees::has(BlockAddr address) const {
  if (stuck_.contains(address)) return false;
  return std::ranges::find(segments_, store_.segments().geometry().segment_of(address)) != segments_.end();
}

void Evacuees::report_stuck() const {
  if (stuck_.empty()) return;
  const auto& [address, error] = *stuck_.begin();
  spdlog::error("{}: {} nodes cannot be moved; the first at block {}: {}", store_.device().name(), stuck_.size(), address, error.message());
  store_.faults().note(error.code(), address, {});
}

}  // namespace varve::store
