// Reading and rewriting `.mfile` and `.ffile`: arrays of fixed-size records under a radix tree, null child = zeros.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/result.h"
#include "tree/node_cache.h"

namespace varve::tree {

class NodeSink;

struct MapRoot {
  format::NodeRef ref;  // none: the whole map is zero
  format::TreeId tree = format::TreeId::reverse_map;
  format::MapShape shape;
};

// The leaf that holds record `index`, or null when all of it is zero.
Result<NodePtr> find_map_leaf(NodeSource& source, const MapRoot& root, std::uint64_t index);

// The reference to the node of `level` that holds record `index`; none: all of it is zero, or the tree is not so high.
Result<format::NodeRef> find_map_node(NodeSource& source, const MapRoot& root, std::uint64_t index, std::uint8_t level);

// Calls visit(first record index, records) for every leaf that is not zero, in order, with deep read-ahead. The last
// leaf shows only the records that exist. An error of visit ends the scan and is its result.
Status scan_map(NodeSource& source, const MapRoot& root,
                const std::function<Status(std::uint64_t, std::span<const std::byte>)>& visit);

// The next version of a map, built in memory: touch leaves, give addresses, change records, write. Belongs to one
// thread. Giving an address to a node makes other records dirty (the owner of that block, the segment that it is in). So
// the caller alternates touch() and assign() until nothing new comes, then changes records, then writes.
class MapEditor {
 public:
  MapEditor(NodeSource& source, const MapRoot& root);

  // Makes the leaf of this record and all nodes above it dirty. Old content is loaded.
  Status touch(std::uint64_t index) { return touch({&index, 1}); }
  // Many at once, in any order, reading what is missing in batches. After an error some of them may have been touched;
  // touching again goes on.
  // `lowest`: no nodes below this level.
  Status touch(std::span<const std::uint64_t> indices, std::uint8_t lowest = 0);
  // Gives a new address to each dirty node that has none yet, leaves first, releases the old one; calls
  // given(address, level) per node, which may touch() more.
  Status assign(NodeSink& sink, const std::function<void(BlockAddr, std::uint8_t level)>& given);
  // Bytes of a record whose leaf was touched; changeable until write(). Empty: its leaf is not in memory.
  std::span<std::byte> record(std::uint64_t index);
  // Every dirty node with its new address.
  void for_each_address(const std::function<void(BlockAddr, std::uint8_t level)>& visit) const {
    for (const auto& [position, node] : dirty_) visit(node.address, position.first);
  }
  // Writes all dirty nodes, children first; every one must have an address, and content if it has not been written.
  Result<MapRoot> write(NodeSink& sink);

  // For more leaves than memory should hold: after defer_leaves() touch() loads no leaf. load_leaves() does, those touched
  // leaves that have records in [first, end); write_leaves() writes these and lets go of their content, for good.
  void defer_leaves() { deferred_ = true; }
  Status load_leaves(std::uint64_t first, std::uint64_t end);
  // The record behind so many touched leaves from `first` on, or behind the last; `first`, if there is none any more.
  std::uint64_t end_of_leaves(std::uint64_t first, std::uint64_t leaves) const;
  Status write_leaves(NodeSink& sink);

  // Before anything is touched: the map gets another number of records. Where it grows, new levels may come above the old root.
  // Where it shrinks, what stands beyond its end is released, and its root may be a lower node.
  Status reshape(const format::MapShape& shape, NodeSink& sink);
  // Everything from this record on becomes zero: whole nodes of it are released. The map keeps its shape.
  Status clear_from(std::uint64_t record, NodeSink& sink);

  // Old nodes that cannot be read, or are damaged, count as zeros from here on, if `may_lose` agrees.
  void replace_bad_nodes(std::function<Status(BlockAddr, const Error&)> may_lose) { may_lose_ = std::move(may_lose); }

 private:
  struct DirtyNode {
    BlockAddr old_address;
    BlockAddr address;                    // none until assigned
    std::vector<format::NodeRef> slots;   // interior
    AlignedBuffer records;                // leaf
    format::NodeRef written;              // leaf of write_leaves()
  };
  using Position = std::pair<std::uint8_t, std::uint64_t>;  // level, index of the node in its level

  void add_levels(unsigned from, unsigned to);
  Status descend(unsigned from, unsigned to, NodeSink& sink);
  Status release_below(const format::NodeRef& ref, const Position& position, NodeSink& sink);
  const format::NodeRef& old_ref(const Position& position) const;
  Status touch_level(std::uint8_t level, std::span<const Position> missing);
  Result<NodePtr> get_old(const format::NodeRef& ref, const Position& position);
  Status load(const Position& position);
  Status load_records(DirtyNode& node, const format::NodeRef& old, std::uint64_t leaf);
  Status load_batch(std::span<const Position> leaves);
  Result<format::NodeRef> write_node(const Position& position, const DirtyNode& node, NodeSink& sink,
                                     AlignedBuffer& block);

  NodeSource& source_;
  MapRoot root_;
  std::map<Position, DirtyNode> dirty_;
  std::vector<Position> unassigned_;
  std::vector<Position> loaded_;  // by load_leaves(), not written yet
  bool deferred_ = false;
  std::uint64_t end_ = ~0ULL;  // records from here on are zero, whatever stands in old leaves
  std::function<Status(BlockAddr, const Error&)> may_lose_;
};

}  // namespace varve::tree
