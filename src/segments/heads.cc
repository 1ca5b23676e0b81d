#include "segments/heads.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::segments {

void Heads::set(unsigned group, const format::Run& rest) {
  MEMORY_INVARIANT(group < rests_.size());
  rests_[group] = rest;
  used_[group] = clock_;
}

format::Run Heads::allocate(unsigned group, std::uint32_t blocks) {
  MEMORY_INVARIANT(group < rests_.size());
  format::Run& head = rests_[group];
  if (!head.blocks) {
    auto id = segments_.take(static_cast<std::uint8_t>(group), clock_);
    if (!id) return {};
    head = {segments_.geometry().start_of(*id), segments_.geometry().blocks};
  }
  const format::Run got{head.start, std::min(head.blocks, blocks)};
  INVARIANT(segments_.geometry().segment_of(got.start) == segments_.geometry().segment_of(got.start + (head.blocks - 1)));
  segments_.touch(got.start);
  used_[group] = clock_;
  head.start = head.start + got.blocks;
  head.blocks -= got.blocks;
  if (!head.blocks) segments_.close(segments_.geometry().segment_of(got.start), clock_);
  return got;
}

// The superblock may go on naming their rests, which is believed after a clean unmount only, by a checkpoint of then.
unsigned Heads::give_up(std::uint64_t before) {
  unsigned closed = 0;
  for (unsigned group = 1; group < rests_.size(); ++group) {
    format::Run& head = rests_[group];
    if (!head.blocks || used_[group] >= before) continue;
    segments_.close(segments_.geometry().segment_of(head.start), clock_);
    head = {};
    ++closed;
  }
  return closed;
}

void Heads::leave() {
  for (format::Run& head : rests_) {
    if (!head.blocks) continue;
    const SegmentId segment = segments_.geometry().segment_of(head.start);
    if (segment.v < segments_.end().limit()) continue;
    segments_.close(segment, clock_);
    head = {};
  }
}

format::Run Heads::allocate_in_hole(std::uint32_t blocks) {
  const format::Run got = holes_.take(blocks);
  INVARIANT(got.blocks <= blocks);
  if (got.blocks) segments_.touch(got.start);
  close_finished_holes();
  return got;
}

void Heads::give_up_begun_holes() {
  holes_.give_up_begun();
  close_finished_holes();
}

void Heads::give_up_holes() {
  holes_.give_up();
  close_finished_holes();
}

void Heads::close_finished_holes() {
  for (SegmentId segment : holes_.take_finished()) segments_.close(segment, clock_);
}

}  // namespace varve::segments
