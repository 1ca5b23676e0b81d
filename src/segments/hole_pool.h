// Holes of used segments that heads write into before they take a clean segment: a threaded log (ScherlFS; Rosenblum and
// Ousterhout 1992, 3.2). Handed out by the block, whatever the group, so that what is left is all there for the next.
//
// Not thread-safe: changed with the gate closed, read inside it.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "format/chunk.h"

namespace varve::segments {

class HolePool {
 public:
  // The holes of one segment, in ascending order; not empty.
  void add(SegmentId segment, const std::vector<format::Run>& holes);
  // Up to `blocks` consecutive ones, of the segment that came first.
  format::Run take(std::uint32_t blocks);
  // Segments that nobody takes from any more; each is returned once.
  std::vector<SegmentId> take_finished();
  // Gives up the rest of a segment that something was taken from; of all segments.
  void give_up_begun();
  void give_up();

  std::uint64_t blocks() const { return blocks_; }
  std::uint64_t untouched() const { return segments_.size() - begun_; }  // segments that nothing was taken from

 private:
  struct Segment {
    SegmentId id;
    std::deque<format::Run> holes;
  };
  void finish_first();

  std::deque<Segment> segments_;
  std::size_t begun_ = 0;  // 0 or 1: the first of them
  std::uint64_t blocks_ = 0;
  std::vector<SegmentId> finished_;
};

}  // namespace varve::segments
