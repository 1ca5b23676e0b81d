// What a checkpoint may take before it gives anything back (H39).
//
// All nodes that change are written before one old node is free, so the segments for them must be there when it begins.
// An operation is let in only if what it adds can still be merged. The bounds here are from above. Pure functions.
#pragma once

#include <cstdint>

#include "space/demand.h"

namespace varve::space {

struct TreeSizes {  // as they stand
  std::uint64_t tree_blocks = 0;     // nodes of all trees
  std::uint64_t live_blocks = 0;     // that the reverse map knows
  std::uint64_t reverse_leaves = 0;  // of the whole device
  std::uint64_t reverse_per_leaf = 1;
  std::uint64_t free_leaves = 0;
  std::uint64_t used_segments = ~0ULL;  // that are not clean
  std::uint64_t segment_blocks = 1;
};

// Blocks that merging all of `demand` writes, at most.
std::uint64_t merge_blocks(const TreeSizes& trees, const Demand& demand);

// Leaves that these bytes of new items fill, at most.
std::uint64_t leaves_of(std::uint64_t item_bytes);

}  // namespace varve::space
