// One checkpoint's trees. Immutable.
#pragma once

#include <cstdint>

#include "format/superblock.h"
#include "segments/segment_table.h"
#include "tree/item_tree.h"
#include "tree/map_tree.h"

namespace varve::tree {

// Of what snapshots hold, that which none holds that was asked for (SnapshotList::loose). It is nobody's room: it goes when it is needed.
struct AutomaticHoldings {
  std::uint64_t blocks = 0, standing = 0, most = 0;  // as in SnapshotList::Loose
  std::uint64_t shared_for_good = 0;  // nodes of the inode file that a snapshot which was asked for has, too; or more
  bool has_permanent = false;         // there is one that was asked for
};

struct TreeView {
  Serial serial;
  std::uint64_t generation = 0;  // of the newest delta merged into it
  segments::SegmentGeometry segments;  // where all that it names must be
  TreeRoot inode_file;
  MapRoot reverse_map;
  MapRoot free_map;
  std::uint64_t live_blocks = 0;
  std::uint64_t data_blocks = 0;
  std::uint64_t reserved_blocks = 0;  // in unwritten extents
  std::uint64_t inodes = 0;
  format::SnapshotTables tables;  // of snapshots, if there are any
  AutomaticHoldings automatic;
  bool has_tails = false;  // there may be some in the inode file
  // This is the state of a snapshot: addresses in the inode file are as of then (places.h), also behind an end that has come nearer since.
  // `segments` allows for that.
  Serial kept;

  TreeRoot snapshot_tree() const { return {tables.root, tables.level, format::TreeId::snapshots}; }
  // Nodes of trees, without those that only snapshots have.
  std::uint64_t node_blocks() const {
    const std::uint64_t others = data_blocks + tables.held_blocks;
    return live_blocks - (others < live_blocks ? others : live_blocks);
  }
};

}  // namespace varve::tree
