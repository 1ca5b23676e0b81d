// A sample of what was written to each segment, for policies that want one: how long ago its blocks were written, or
// written anew somewhere else. Nothing is kept, and nothing but a flag looked at, while no policy wants it.
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"
#include "device/reservoir.h"

namespace varve::segments {

// Thread-safe. Clocks are in clock units of the superblock.
class SegmentSamples {
 public:
  explicit SegmentSamples(std::uint64_t segments) : segments_(segments) {}

  void resize(std::uint64_t segments);
  // From now on so many blocks of each segment; 0: none. What was known before is kept if the number is the same.
  void keep(std::size_t each);

  void written(SegmentId id, std::uint32_t first, std::uint32_t blocks, std::uint32_t clock) {
    if (is_kept()) note(id, first, blocks, &clock);
  }
  // Blocks died. A block is written anew before its old place dies, or soon after: the youngest clock there is will do.
  void died(SegmentId id, std::uint32_t first, std::uint32_t blocks) {
    if (is_kept()) note(id, first, blocks, nullptr);
  }
  void emptied(SegmentId id);

  // Of the sample's blocks; 0: there is none.
  double mean_clock(SegmentId id) const;

 private:
  bool is_kept() const { return each_.load(std::memory_order_relaxed) != 0; }
  void note(SegmentId id, std::uint32_t first, std::uint32_t blocks, const std::uint32_t* clock);  // no clock: they died

  std::atomic<std::size_t> each_{0};
  mutable Mutex mutex_;  // of all below
  std::uint64_t segments_ GUARDED_BY(mutex_);
  std::vector<device::Reservoir> reservoirs_ GUARDED_BY(mutex_);
  std::uint32_t now_ GUARDED_BY(mutex_) = 0;
  SeededRandom random_ GUARDED_BY(mutex_){1};
};

}  // namespace varve::segments
