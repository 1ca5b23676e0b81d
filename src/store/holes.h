// The free blocks of a segment, by the newest checkpoint's free-region map.
#pragma once

#include <span>
#include <vector>

#include "format/chunk.h"
#include "log/segment_table.h"
#include "store/tree_view.h"

namespace varve::store {

// Bit i: block i of the segment is live in that checkpoint. Errors are those of reading the map.
Result<std::vector<bool>> live_bits(NodeSource& source, const TreeView& view, const log::SegmentGeometry& geometry,
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
Result<std::vector<format::Run>> holes_of(NodeSource& source, const TreeView& view, const log::SegmentGeometry& geometry,
                                          SegmentId segment);

// Can these blocks be entered in the reverse map? A checkpoint reads each leaf that it changes, and must not fail.
Status check_reverse_map(NodeSource& source, const TreeView& view, std::span<const format::Run> blocks);

}  // namespace varve::store
