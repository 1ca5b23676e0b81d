// Nodes that are read along with one that is missing, because they stand beside it on the device and are likely to be asked for next.
//
// A checkpoint writes nodes in the order of addresses, so that siblings stand next to each other. A request for many of them costs little
// more than one for a single node where reads seek. Elsewhere it pays only for a walk from leaf to leaf, which shows by what is cached.
#pragma once

#include <vector>

#include "tree/node_cache.h"

namespace varve::tree {

inline constexpr std::uint64_t kMostNodesInRun = 64;  // blocks of one request: 256 KiB

// What may stand between two nodes of one request and be read for nothing, in blocks.
constexpr std::uint64_t most_between(bool seeks) { return seeks ? 16 : 2; }

// Those to read along with the child of that level, which is not cached: none of them is. All fit in one request with it.
std::vector<NodeWant> neighbours_of(const NodeCache& cache, const Siblings& siblings, std::uint8_t level, bool seeks);

// How many of the wants, sorted by address, one request can read.
std::size_t run_length(std::span<const NodeWant> wants, std::uint64_t most_between);

}  // namespace varve::tree
