// The free blocks of a segment, by the newest checkpoint's free-region map.
#pragma once

#include <vector>

#include "format/chunk.h"
#include "log/segment_table.h"
#include "meta/tree_view.h"

namespace varve::meta {

// Bit i: block i of the segment is live in that checkpoint. Errors are those of reading the map.
Result<std::vector<bool>> live_bits(NodeSource& source, const TreeView& view, const log::SegmentGeometry& geometry,
                                    SegmentId segment);

// The runs of free blocks, in ascending order. They may be written if SegmentTable::open_holes() says so, with the
// generation of this view.
Result<std::vector<format::Run>> holes_of(NodeSource& source, const TreeView& view, const log::SegmentGeometry& geometry,
                                          SegmentId segment);

}  // namespace varve::meta
