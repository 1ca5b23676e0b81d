// How much may be on its way to the device before writers wait: what it writes in 50 ms. So a sync that comes behind all of it still
// answers soon. A stream keeps a fast disk busy with that, and does not pile up seconds before a slow one.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/mutex.h"

namespace varve::device {

// Thread-safe. Times are monotonic ns; those of several threads may come in another order.
class Bandwidth {
 public:
  // The bound never leaves [least, most]; it starts at `most`.
  Bandwidth(std::uint64_t least, std::uint64_t most) : least_(least), most_(most), limit_(most) {}

  void started(std::uint64_t bytes, std::uint64_t now);
  void done(std::uint64_t bytes, std::uint64_t now);

  std::uint64_t limit() const { return limit_.load(std::memory_order_relaxed); }  // bytes in flight
  // Of what comes in piles, as seals do: from the first begin to the last end, waits between included. 0: not known yet.
  std::uint64_t bytes_per_second() const { return per_second_.load(std::memory_order_relaxed); }

 private:
  void close_window() REQUIRES(mutex_);
  void open_pile(std::uint64_t now) REQUIRES(mutex_);
  void close_pile(std::uint64_t now) REQUIRES(mutex_);

  const std::uint64_t least_, most_;
  std::atomic<std::uint64_t> limit_, per_second_{0};
  Mutex mutex_;
  // Under mutex_:
  std::uint64_t in_flight_ GUARDED_BY(mutex_) = 0, peak_ GUARDED_BY(mutex_) = 0;
  std::uint64_t landed_ GUARDED_BY(mutex_) = 0;  // bytes in this window
  std::uint64_t busy_ns_ GUARDED_BY(mutex_) = 0, since_ GUARDED_BY(mutex_) = 0;
  std::uint64_t pile_ GUARDED_BY(mutex_) = 0, pile_since_ GUARDED_BY(mutex_) = 0;  // bytes that have landed since then
  double rate_ GUARDED_BY(mutex_) = 0, pile_rate_ GUARDED_BY(mutex_) = 0;  // bytes per ns, smoothed; 0: not known yet
};

}  // namespace varve::device
