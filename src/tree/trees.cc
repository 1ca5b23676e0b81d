#include "tree/trees.h"

#include <utility>

#include "base/invariant.h"

namespace varve::tree {

namespace {

TreesPtr view_of(const format::Superblock& super, const segments::SegmentGeometry& segments) {
  auto view = std::make_shared<TreeView>();
  view->serial = super.serial;
  view->segments = segments;
  view->inode_file = {super.inode_file, super.inode_file_level};
  view->reverse_map = {super.reverse_map, format::TreeId::reverse_map, format::reverse_map_shape(super.device_blocks)};
  view->free_map = {super.free_map, format::TreeId::free_map, format::free_map_shape(super.segments, super.segment_blocks)};
  view->live_blocks = super.live_blocks;
  view->data_blocks = super.data_blocks;
  view->reserved_blocks = super.reserved_blocks;
  view->inodes = super.inodes;
  view->tables = super.snapshots;
  view->has_tails = super.features.incompat & format::kIncompatTails;
  return view;
}

}  // namespace

TreeView as_of(const TreeView& newest, const format::SnapshotItem& snapshot) {
  TreeView view = newest;
  view.inode_file = {snapshot.inode_file, snapshot.inode_file_level};
  view.data_blocks = snapshot.data_blocks;
  view.reserved_blocks = snapshot.reserved_blocks;
  view.inodes = snapshot.inodes;
  view.kept = snapshot.serial;
  view.segments.count = format::kMaxAddress / view.segments.blocks;
  return view;
}

Trees::Trees(io::BlockDevice& device, const format::Superblock& super, const segments::SegmentGeometry& segments, std::size_t cache_bytes)
    : device_(device), cache_(super.identity, cache_bytes), newest_(view_of(super, segments)) {}

void Trees::show(const format::SnapshotItem& snapshot) {
  newest_ = std::make_shared<TreeView>(as_of(*newest_, snapshot));
}

void Trees::note_automatic(const AutomaticHoldings& holdings) {
  auto view = std::make_shared<TreeView>(*newest_);
  view->automatic = holdings;
  newest_ = std::move(view);
}

TreesPtr Trees::replace(TreesPtr next) {
  INVARIANT(next->serial.v == newest_->serial.v + 1);
  INVARIANT(next->generation > newest_->generation);
  return std::exchange(newest_, std::move(next));
}

}  // namespace varve::tree
