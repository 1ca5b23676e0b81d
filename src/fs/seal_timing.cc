#include "fs/seal_timing.h"

#include <algorithm>

namespace varve::fs {

namespace {
constexpr std::uint64_t kShareOfQuiet = 10;            // of it a sync may wait for what others have written
constexpr std::uint64_t kShortestWaitMs = 20, kLongestWaitMs = 1000;
constexpr std::uint64_t kAssumedBandwidth = 10 << 20;  // of a slow card, until it is measured
constexpr std::uint64_t kShareOfRoom = 16;             // room is scarce before what waits has become much of it
}  // namespace

std::uint64_t most_unsealed(const SealView& view) {
  const std::uint64_t wait_ms = std::clamp(view.quiet_ns / 1'000'000 / kShareOfQuiet, kShortestWaitMs, kLongestWaitMs);
  const std::uint64_t rate = view.bytes_per_second ? view.bytes_per_second : kAssumedBandwidth;
  return std::max(std::min(rate / 1000 * wait_ms, view.room / kShareOfRoom), kLeastUnsealed);
}

bool seal_is_due(const SealView& view) {
  if (view.stream >= kLeastUnsealed || view.payload >= most_unsealed(view)) return true;
  return view.held >= std::max(view.memory, 2 * kLeastUnsealed);
}

std::uint64_t SyncTimes::since_last_ns(std::uint64_t now_ns) const {
  return now_ns - std::min(now_ns, last_ns_.load(std::memory_order_relaxed));  // another thread's may be later
}

}  // namespace varve::fs
