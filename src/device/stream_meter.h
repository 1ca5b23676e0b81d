// How many places the device can write in turn before each turn costs it a copy of a whole erase unit.
//
// A cheap card or stick keeps a few units open. A write that goes on in one of them costs what it writes. Any other write first closes
// the unit that was used longest ago (A. Bergmann, "Optimizing Linux with cheap flash drives"). So a write that goes on where the last one
// in its unit ended is quick or slow by how many other units were written in between, its distance, as in a cache with LRU.
// This looks at the writes that are made anyway.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "base/mutex.h"

namespace varve::device {

// Thread-safe.
class StreamMeter {
 public:
  static constexpr unsigned kMost = 24;  // units that are remembered; devices that keep more open have no limit for us

  // In bytes: what the device is thought to erase as a whole, 0: nothing is measured; and what of the disk stands in front of it.
  explicit StreamMeter(std::uint64_t unit, std::uint64_t before = 0) : unit_(unit), before_(before) {}

  bool measures() const { return unit_ != 0; }
  struct Beside {
    bool durable = false;  // it was flushed as well, which takes its time anywhere
    bool late = false;     // the machine was busy: quick ones may seem slow
  };
  // A write of these bytes was on its way from `began` to `ended`.
  void observe(std::uint64_t offset, std::uint64_t length, std::uint64_t began_ns, std::uint64_t ended_ns, const Beside& beside);
  void observe(std::uint64_t offset, std::uint64_t length, std::uint64_t began_ns, std::uint64_t ended_ns) {
    observe(offset, length, began_ns, ended_ns, {});
  }
  // Places that stay cheap; 0: none has been found to be dear, or too little has been seen.
  unsigned limit() const { return limit_.load(std::memory_order_relaxed); }
  // Returns how many other places may be written in between: it has been seen that this stays cheap. kMost: nothing is measured.
  unsigned proven() const { return unit_ ? proven_.load(std::memory_order_relaxed) : kMost; }

 private:
  struct Unit {
    std::uint64_t number = 0, end = 0;  // where the last write in it ended
  };
  struct Count {  // of writes at one distance
    std::uint32_t quick = 0, slow = 0;
    std::uint32_t dear = 0;  // of the slow ones: half a unit may have been copied for it
    std::uint32_t all() const { return quick + slow; }
  };

  unsigned distance_of(std::uint64_t begin, std::uint64_t end) REQUIRES(mutex_);
  enum class Pace : std::uint8_t { quick, slow, dear };
  Pace pace_of(unsigned distance, std::uint64_t length, double ns) REQUIRES(mutex_);
  void judge() REQUIRES(mutex_);
  void prove(unsigned distance) REQUIRES(mutex_);

  const std::uint64_t unit_, before_;
  Mutex mutex_;
  std::vector<Unit> recent_ GUARDED_BY(mutex_);  // the last one written comes first
  using Counts = std::array<Count, kMost>;
  static void count(Count& count, Pace pace);
  static Count sum(const Counts& counts, unsigned first, unsigned end);
  Counts counts_ GUARDED_BY(mutex_){}, plain_ GUARDED_BY(mutex_){};  // plain: without durable ones
  std::uint64_t free_at_ns_ GUARDED_BY(mutex_) = 0;
  double row_bytes_ GUARDED_BY(mutex_) = 1 << 20, row_ns_ GUARDED_BY(mutex_) = 1e8;  // of writes in a row: 10 MB/s to begin with
  std::atomic<unsigned> limit_{0}, proven_{0};
};

}  // namespace varve::device
