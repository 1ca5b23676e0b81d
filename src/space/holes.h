// The free blocks of a segment, by the newest checkpoint's free-region map.
#pragma once

#include <span>
#include <vector>

#include "format/chunk.h"
#include "segments/segment_table.h"
#include "tree/tree_view.h"

namespace varve::space {

// Bit i: block i of the segment is live in that checkpoint. Errors are those of reading the map.
Result<std::vector<bool>> live_bits(tree::NodeSource& source, const tree::TreeView& view, const segments::SegmentGeometry& geometry,
                                    SegmentId segment);

// Neighbouring blocks of a segment that are free, by their index.
struct FreeRun {
  std::uint32_t start = 0, blocks = 0;
  std::uint32_t end() const { return start + blocks; }
};
// All of them, in ascending order; `live` as above.
std::vector<FreeRun> free_runs(const std::vector<bool>& live);

// The same as addresses. They may be written if SegmentTable::open_holes() says so, with the
// generation of this view.
Result<std::vector<format::Run>> holes_of(tree::NodeSource& source, const tree::TreeView& view, const segments::SegmentGeometry& geometry,
                                          SegmentId segment);

// Can these blocks be entered in the reverse map? A checkpoint reads each leaf that it changes, and must not fail.
Status check_reverse_map(tree::NodeSource& source, const tree::TreeView& view, std::span<const format::Run> blocks);

}  // namespace varve::space
