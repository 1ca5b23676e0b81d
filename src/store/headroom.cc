#include "store/headroom.h"

#include <algorithm>

#include "format/layout.h"

namespace varve::store {

namespace {

// An interior node has 48 children or more, but for the last of each level; there are few levels.
constexpr std::uint64_t kFewestChildren = 48;
constexpr std::uint64_t kEdges = 8;
// Blocks of files are appended at a head of their group: each begins and ends within leaves of its own, and so does the
// segment that follows it.
constexpr std::uint64_t kEdgesOfHeads = 4 * (format::kMaxGroups - 1);

// A changed place rewrites its leaf, which becomes two or takes a sibling along, and the nodes above, which neighbours
// share. No old node makes more than two new ones, but for what comes new.
std::uint64_t item_blocks(const MergeLoad& load) {
  const std::uint64_t map_leaves = load.live_blocks / load.reverse_per_leaf;
  const std::uint64_t standing = load.tree_blocks - std::min(load.tree_blocks, map_leaves);
  const std::uint64_t leaves = 2 * load.places + load.evacuated;
  const std::uint64_t above = std::min(leaves, standing / kFewestChildren);
  return std::min(leaves + above, 2 * standing) + leaves_of(load.item_bytes) + kEdges;
}

// New addresses are consecutive, but for a header for each block at worst and for the ends of segments; in holes they are
// anywhere in their segment.
std::uint64_t reverse_blocks(const MergeLoad& load, std::uint64_t new_blocks) {
  const std::uint64_t leaves_of_segment = load.segment_blocks / load.reverse_per_leaf + 2;
  const std::uint64_t touched = 2 * new_blocks / load.reverse_per_leaf + 4 * new_blocks / load.segment_blocks +
                                load.evacuated + kEdges + std::min(load.blocks, kEdgesOfHeads) +
                                load.scattered * leaves_of_segment;
  const std::uint64_t leaves = std::min(load.reverse_leaves, touched);
  return leaves + leaves / kFewestChildren + 2;
}

}  // namespace

std::uint64_t leaves_of(std::uint64_t item_bytes) { return item_bytes / 1024; }  // and of the nodes above them

std::uint64_t merge_blocks(const MergeLoad& load) {
  const std::uint64_t items = item_blocks(load);
  const std::uint64_t free_map = load.free_leaves + load.free_leaves / kFewestChildren + 2;
  const std::uint64_t image = 1;
  return items + reverse_blocks(load, items + load.blocks) + free_map + image;
}

}  // namespace varve::store
