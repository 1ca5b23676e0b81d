// Where bare payload is appended: a head for each temperature group, and the holes that are open. Changed with the gate closed.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/gate.h"
#include "format/chunk.h"
#include "format/layout.h"
#include "segments/hole_pool.h"
#include "segments/segment_table.h"

namespace varve::segments {

class Heads {
 public:
  using Rests = std::array<format::Run, format::kMaxGroups>;

  explicit Heads(SegmentTable& segments) : segments_(segments) {}

  // The log clock, for the ages of segments and heads.
  void set_clock(std::uint64_t clock) REQUIRES(the_gate) { clock_ = clock; }
  std::uint64_t clock() const REQUIRES_SHARED(the_gate) { return clock_; }
  void set(unsigned group, const format::Run& rest) REQUIRES(the_gate);

  // What is left of each.
  const Rests& rests() const REQUIRES_SHARED(the_gate) { return rests_; }
  // Up to `blocks` consecutive blocks at the head of a group; an empty run when no segment is clean.
  format::Run allocate(unsigned group, std::uint32_t blocks) REQUIRES(the_gate);
  // Closes heads of groups other than 0 at which nothing has been written since `before` (log clock): an open segment
  // cannot be cleaned. Group 0 keeps its head: admission counts on the room there. Returns how many.
  unsigned give_up(std::uint64_t before) REQUIRES(the_gate);

  // Closes all heads, that of group 0 as well, that stand at or beyond the limit (SegmentTable).
  void leave() REQUIRES(the_gate);

  const HolePool& holes() const REQUIRES_SHARED(the_gate) { return holes_; }
  // From segments that are open for them (SegmentTable::open_holes). Up to `blocks` consecutive blocks; an empty run when there
  // is none.
  format::Run allocate_in_hole(std::uint32_t blocks) REQUIRES(the_gate);
  void add_holes(SegmentId segment, const std::vector<format::Run>& holes) REQUIRES(the_gate) { holes_.add(segment, holes); }
  // Closes the segment that was written to last, or all.
  void give_up_begun_holes() REQUIRES(the_gate);
  void give_up_holes() REQUIRES(the_gate);

 private:
  void close_finished_holes() REQUIRES(the_gate);

  SegmentTable& segments_;
  std::uint64_t clock_ GUARDED_BY(the_gate) = 0;
  Rests rests_ GUARDED_BY(the_gate){};
  std::array<std::uint64_t, format::kMaxGroups> used_ GUARDED_BY(the_gate){};  // log clock
  HolePool holes_ GUARDED_BY(the_gate);
};

}  // namespace varve::segments
