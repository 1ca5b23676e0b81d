// Where the nodes of a map stand in its tree: shared by what reads it and what rewrites it.
#pragma once

#include <fmt/format.h>

#include "tree/map_tree.h"

namespace varve::tree {

// Number of leaves below one node of `level`.
inline std::uint64_t leaves_below(unsigned level) {
  std::uint64_t leaves = 1;
  for (; level > 0; --level) leaves *= format::kMapFanout;
  return leaves;
}

inline std::uint64_t first_record(const format::MapShape& shape, unsigned level, std::uint64_t index) {
  return index * leaves_below(level) * shape.per_leaf();
}

inline std::size_t slot_of(std::uint64_t index_in_level) { return static_cast<std::size_t>(index_in_level % format::kMapFanout); }

inline NodeWant want_of(const MapRoot& root, const format::NodeRef& ref, unsigned level) {
  return {ref, root.tree, static_cast<std::uint8_t>(level)};
}

inline Result<NodePtr> get_node(NodeSource& source, const MapRoot& root, const format::NodeRef& ref, unsigned level,
                         std::uint64_t index) {
  NodePtr node = TRY(source.get(want_of(root, ref, level)));
  if (node->header().first.offset != first_record(root.shape, level, index))
    return Error(Errc::corrupt,
                 fmt::format("map node at block {}: holds other records than its parent says", ref.address));
  return node;
}

}  // namespace varve::tree
