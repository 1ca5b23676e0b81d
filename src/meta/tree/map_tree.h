// Reading and rewriting `.mfile` and `.ffile`: arrays of fixed-size records under a radix tree, null child = zeros.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/buffer.h"
#include "base/result.h"
#include "meta/tree/item_merge.h"
#include "meta/tree/node_cache.h"

namespace varve::meta {

struct MapRoot {
  format::NodeRef ref;  // none: the whole map is zero
  format::TreeId tree = format::TreeId::reverse_map;
  format::MapShape shape;
};

// The leaf that holds record `index`, or null when all of it is zero.
Result<NodePtr> find_map_leaf(NodeSource& source, const MapRoot& root, std::uint64_t index);

// Calls visit(first record index, records) for every leaf that is not zero, in order, with deep read-ahead.
Status scan_map(NodeSource& source, const MapRoot& root,
                const std::function<Status(std::uint64_t, std::span<const std::byte>)>& visit);

// The next version of a map, built in memory: touch leaves, give addresses, change records, write. Belongs to one
// thread. Giving an address to a node makes other records dirty (who owns that block, which segment it is in): the
// caller alternates touch() and assign() until nothing new comes, then changes records, then writes.
class MapEditor {
 public:
  MapEditor(NodeSource& source, const MapRoot& root);

  // Makes the leaf of this record and all nodes above it dirty. Old content is loaded.
  Status touch(std::uint64_t index);
  // Gives a new address to each dirty node that has none yet, releases the old one; calls given(address, level) per node.
  Status assign(NodeSink& sink, const std::function<void(BlockAddr, std::uint8_t level)>& given);
  // Bytes of a record whose leaf was touched; changeable until write().
  std::span<std::byte> record(std::uint64_t index);
  std::uint64_t dirty_nodes() const;
  // Writes all dirty nodes, children first; every one must have an address.
  Result<MapRoot> write(NodeSink& sink);

 private:
  struct DirtyNode {
    BlockAddr old_address;
    BlockAddr address;                    // none until assigned
    std::vector<format::NodeRef> slots;   // interior
    AlignedBuffer records;                // leaf
  };
  using Position = std::pair<std::uint8_t, std::uint64_t>;  // level, index of the node in its level

  NodeSource& source_;
  MapRoot root_;
  std::map<Position, DirtyNode> dirty_;
  std::vector<Position> unassigned_;
};

}  // namespace varve::meta
