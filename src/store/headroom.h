// What a checkpoint may take before it gives anything back (H39).
//
// All nodes that change are written before one old node is free, so the segments for them must be there when it begins:
// an operation is let in only if what it adds can still be merged. The bounds here are from above.
#pragma once

#include <cstdint>

namespace varve::store {

struct MergeLoad {
  std::uint64_t tree_blocks = 0;     // nodes of all trees, as they stand
  std::uint64_t live_blocks = 0;     // blocks that the reverse map knows
  std::uint64_t reverse_leaves = 0;  // of the whole device
  std::uint64_t reverse_per_leaf = 1;
  std::uint64_t free_leaves = 0;
  std::uint64_t segment_blocks = 1;
  std::uint64_t places = 0;          // of the inode file that change: keys, or ends of ranges of them
  std::uint64_t item_bytes = 0;      // that come new
  std::uint64_t blocks = 0;          // of files that come new
  std::uint64_t evacuated = 0;       // nodes that move without a change
  std::uint64_t scattered = 0;       // segments whose holes are written: what comes new there has no neighbours
};

// Blocks that merging it writes, at most.
std::uint64_t merge_blocks(const MergeLoad& load);

// Leaves that these bytes of new items fill, at most.
std::uint64_t leaves_of(std::uint64_t item_bytes);

}  // namespace varve::store
