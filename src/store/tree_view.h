// One checkpoint's trees. Immutable.
#pragma once

#include <cstdint>

#include "log/segment_table.h"
#include "store/tree/item_tree.h"
#include "store/tree/map_tree.h"

namespace varve::store {

struct TreeView {
  Serial serial;
  std::uint64_t generation = 0;  // of the newest delta merged into it
  log::SegmentGeometry segments;  // where all that it names must be
  TreeRoot inode_file;
  MapRoot reverse_map;
  MapRoot free_map;
  std::uint64_t live_blocks = 0;
  std::uint64_t data_blocks = 0;
  std::uint64_t reserved_blocks = 0;  // in unwritten extents
  std::uint64_t inodes = 0;
};

}  // namespace varve::store
