#include "segments/segment_samples.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::segments {

void SegmentSamples::keep(std::size_t each) {
  const Lock lock(mutex_);
  if (each == each_) return;
  reservoirs_.clear();
  reservoirs_.shrink_to_fit();
  if (each) reservoirs_.assign(segments_, device::Reservoir(each));
  each_ = each;
}

void SegmentSamples::resize(std::uint64_t segments) {
  const Lock lock(mutex_);
  segments_ = segments;
  if (!reservoirs_.empty()) reservoirs_.resize(segments, device::Reservoir(each_));
}

void SegmentSamples::note(SegmentId id, std::uint32_t first, std::uint32_t blocks, const std::uint32_t* clock) {
  const Lock lock(mutex_);
  if (reservoirs_.empty()) return;  // not any more
  if (clock) now_ = *clock;
  MEMORY_INVARIANT(id.v < reservoirs_.size());
  device::Reservoir& reservoir = reservoirs_[id.v];
  for (std::uint32_t block = first; block < first + blocks; ++block) {
    if (clock) reservoir.add(block, *clock, random_);
    else reservoir.rewritten(block, now_);
  }
}

void SegmentSamples::emptied(SegmentId id) {
  if (!is_kept()) return;
  const Lock lock(mutex_);
  MEMORY_INVARIANT(reservoirs_.empty() || id.v < reservoirs_.size());
  if (!reservoirs_.empty()) reservoirs_[id.v].clear();
}

double SegmentSamples::mean_clock(SegmentId id) const {
  if (!is_kept()) return 0;
  const Lock lock(mutex_);
  return id.v < reservoirs_.size() ? reservoirs_[id.v].mean_clock() : 0;
}

}  // namespace varve::segments
