// Writes a whole map at once, from the records that are not zero: for mkfs, repairs and tests.
#pragma once

#include <array>
#include <map>
#include <vector>

#include "format/node.h"

namespace varve::format {

struct MadeNode {
  BlockAddr address;
  std::array<std::byte, kBlockSize> bytes;
};

struct NodeIdentity {
  std::uint64_t identity = 0;
  Serial serial;
};

using MapRecords = std::map<std::uint64_t, std::vector<std::byte>>;  // by index; each of the shape's record size

// Appends the nodes to `out`, leaves first, at consecutive addresses from `next`. Returns the root; `records` is not empty.
NodeRef write_map(TreeId tree, const MapShape& shape, const MapRecords& records, const NodeIdentity& identity,
                  BlockAddr next, std::vector<MadeNode>& out);

}  // namespace varve::format
