#include "fs/seal_timing.h"

#include <algorithm>

namespace varve::fs {

namespace {

constexpr std::uint64_t kShareOfQuiet = 10;  // of the time since the last sync: so long the next one may wait for what others have written
constexpr std::uint64_t kShortestWaitMs = 20, kLongestWaitMs = 1000;
// What is modest may wait longer: so much is little work, and on a slow device much is saved when it dies.
constexpr std::uint64_t kModestBytes = 16 << 20, kModestShareOfQuiet = 2, kLongestModestWaitMs = 500;
// A stream does not die young. It waits for the sake of what each chunk costs a slow device: a seek to its header and back, or a page.
constexpr std::uint64_t kStreamShareOfQuiet = 4, kLongestStreamWaitMs = 250;
constexpr std::uint64_t kFast = 200 << 20;             // bytes a second: there a chunk costs little
constexpr std::uint64_t kAssumedBandwidth = 10 << 20;  // of a slow card, until it is measured
constexpr std::uint64_t kShareOfRoom = 16;             // room is scarce before what waits has become much of it

std::uint64_t rate_of(const SealView& view) { return view.bytes_per_second ? view.bytes_per_second : kAssumedBandwidth; }

std::uint64_t modest_bytes(const SealView& view, std::uint64_t share, std::uint64_t most_ms) {
  return std::min(rate_of(view) / 1000 * std::min(view.quiet_ns / 1'000'000 / share, most_ms), kModestBytes);
}

std::uint64_t most_of_stream(const SealView& view) {
  if (rate_of(view) >= kFast) return kLeastUnsealed;
  return std::max(modest_bytes(view, kStreamShareOfQuiet, kLongestStreamWaitMs), kLeastUnsealed);
}

}  // namespace

std::uint64_t most_unsealed(const SealView& view) {
  const std::uint64_t wait_ms = std::clamp(view.quiet_ns / 1'000'000 / kShareOfQuiet, kShortestWaitMs, kLongestWaitMs);
  const std::uint64_t most = std::max(rate_of(view) / 1000 * wait_ms, modest_bytes(view, kModestShareOfQuiet, kLongestModestWaitMs));
  return std::max(std::min(most, view.room / kShareOfRoom), kLeastUnsealed);
}

bool seal_is_due(const SealView& view) {
  if (view.payload >= most_unsealed(view) || view.stream >= most_of_stream(view)) return true;
  return view.held >= std::max(view.memory, 2 * kLeastUnsealed);
}

std::uint64_t SyncTimes::since_last_ns(std::uint64_t now_ns) const {
  return now_ns - std::min(now_ns, last_ns_.load(std::memory_order_relaxed));  // another thread's may be later
}

}  // namespace varve::fs
