#include "segments/hole_pool.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"

namespace varve::segments {

void HolePool::add(SegmentId segment, const std::vector<format::Run>& holes) {
  INVARIANT(!holes.empty());
  segments_.push_back({segment, {holes.begin(), holes.end()}});
  for (const format::Run& hole : holes) blocks_ += hole.blocks;
}

format::Run HolePool::take(std::uint32_t blocks) {
  if (segments_.empty()) return {};
  std::deque<format::Run>& holes = segments_.front().holes;
  MEMORY_INVARIANT(!holes.empty());
  format::Run& hole = holes.front();
  const format::Run got{hole.start, std::min(hole.blocks, blocks)};
  begun_ = 1;
  hole.start = hole.start + got.blocks;
  hole.blocks -= got.blocks;
  INVARIANT(blocks_ >= got.blocks);
  blocks_ -= got.blocks;
  if (!hole.blocks) holes.pop_front();
  if (holes.empty()) finish_first();
  return got;
}

std::vector<SegmentId> HolePool::take_finished() { return std::exchange(finished_, {}); }

void HolePool::give_up_begun() {
  if (begun_) finish_first();
}

void HolePool::give_up() {
  while (!segments_.empty()) finish_first();
}

void HolePool::finish_first() {
  MEMORY_INVARIANT(!segments_.empty());
  for (const format::Run& hole : segments_.front().holes) blocks_ -= hole.blocks;
  INVARIANT(segments_.size() > 1 || blocks_ == 0);
  finished_.push_back(segments_.front().id);
  segments_.pop_front();
  begun_ = 0;
}

}  // namespace varve::segments
