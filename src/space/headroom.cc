#include "space/headroom.h"

#include <algorithm>

#include "format/layout.h"

namespace varve::space {

namespace {

// An interior node has 48 children or more, but for the last of each level; there are few levels.
constexpr std::uint64_t kFewestChildren = 48;
constexpr std::uint64_t kEdges = 8;
// Blocks of files are appended at a head of their group: each begins and ends within leaves of its own, and so does the
// segment that follows it.
constexpr std::uint64_t kEdgesOfHeads = 4 * (format::kMaxGroups - 1);

// A changed place rewrites its leaf, which becomes two or takes a sibling along, and the nodes above, which neighbours
// share. No old node makes more than two new ones, but for what comes new.
std::uint64_t item_blocks(const TreeSizes& trees, const Demand& demand) {
  const std::uint64_t map_leaves = trees.live_blocks / trees.reverse_per_leaf;
  const std::uint64_t standing = trees.tree_blocks - std::min(trees.tree_blocks, map_leaves);
  const std::uint64_t leaves = 2 * demand.places + demand.evacuated;
  const std::uint64_t above = std::min(leaves, standing / kFewestChildren);
  return std::min(leaves + above, 2 * standing) + leaves_of(demand.items()) + kEdges;
}

// New addresses are consecutive, but for a header for each block at worst and for the ends of segments; in holes they are
// anywhere in their segment.
std::uint64_t reverse_blocks(const TreeSizes& trees, const Demand& demand, std::uint64_t new_blocks) {
  const std::uint64_t leaves_of_segment = trees.segment_blocks / trees.reverse_per_leaf + 2;
  const std::uint64_t touched = 2 * new_blocks / trees.reverse_per_leaf + 4 * new_blocks / trees.segment_blocks +
                                demand.evacuated + kEdges + std::min(demand.payload, kEdgesOfHeads) +
                                demand.scattered * leaves_of_segment;
  const std::uint64_t leaves = std::min(trees.reverse_leaves, touched);
  return leaves + leaves / kFewestChildren + 2;
}

}  // namespace

std::uint64_t leaves_of(std::uint64_t item_bytes) { return item_bytes / 1024; }  // and of the nodes above them

namespace {

// Records change of segments that are used, and of those that are taken for what is new.
std::uint64_t free_map_blocks(const TreeSizes& trees, std::uint64_t new_blocks) {
  const std::uint64_t taken = new_blocks / trees.segment_blocks + kEdgesOfHeads;
  const std::uint64_t changed = trees.used_segments > trees.free_leaves ? trees.free_leaves : trees.used_segments + taken;
  const std::uint64_t leaves = std::min(trees.free_leaves, changed);
  return leaves + leaves / kFewestChildren + 2 + (leaves < trees.free_leaves ? kEdges : 0);
}

}  // namespace

std::uint64_t merge_blocks(const TreeSizes& trees, const Demand& demand) {
  const std::uint64_t items = item_blocks(trees, demand);
  const std::uint64_t free_map = free_map_blocks(trees, 2 * (items + demand.payload));
  const std::uint64_t image = 1;
  return items + reverse_blocks(trees, demand, items + demand.payload) + free_map + image;
}

}  // namespace varve::space
