// New extents of a part of a file: what is left of the old ones, and what a delta puts over them.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "changes/delta.h"
#include "format/item.h"

namespace varve::changes {

using PlacedExtent = std::pair<std::uint64_t, format::Extent>;  // first file block, extent
PlacedExtent part_of(const PlacedExtent& whole, std::uint64_t from, std::uint64_t to);  // of its file blocks [from, to)

struct ExtentMerge {
  std::vector<PlacedExtent> extents;   // in order, disjoint, neighbours joined
  std::vector<PlacedExtent> replaced;  // pieces of old extents that are gone
  std::vector<std::pair<std::uint64_t, TailBytes>> tails;  // put by the delta, in order
  std::uint64_t added = 0;             // file blocks put by the delta, written
  std::uint64_t added_unwritten = 0;
};

// `old_extents`: all that start in [from, to), in order, reaching at most to `to`. The delta's changes in [from, to)
// are applied. No block of the delta may be pending.
ExtentMerge merge_extents(const std::vector<PlacedExtent>& old_extents, const FileDelta& delta, std::uint64_t from,
                          std::uint64_t to);

// Does the delta say what is at this block?
bool is_changed(const FileDelta& delta, std::uint64_t block);
// The first file block >= block that the delta changes.
std::optional<std::uint64_t> next_change(const FileDelta& delta, std::uint64_t block);

}  // namespace varve::changes
