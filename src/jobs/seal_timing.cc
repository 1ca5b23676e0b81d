#include "jobs/seal_timing.h"

#include <algorithm>

#include "base/clock.h"
#include "changes/staging.h"
#include "checkpoint/seals.h"
#include "log/log.h"
#include "segments/segment_table.h"
#include "space/space.h"

namespace varve::jobs {

namespace {

constexpr std::uint64_t kShareOfQuiet = 10;  // of the time since the last sync: so long the next one may wait for what others have written
constexpr std::uint64_t kShortestWaitMs = 20, kLongestWaitMs = 1000;
// What is modest may wait longer: so much is little work, and on a slow device much is saved when it dies.
constexpr std::uint64_t kModestBytes = 4 << 20, kModestShareOfQuiet = 2, kLongestModestWaitMs = 500;
// A stream does not die young. It waits for the sake of what each chunk costs a slow device: a seek to its header and back, or a page.
constexpr std::uint64_t kStreamBytes = 4 << 20, kStreamBytesOfSeeks = 16 << 20, kStreamShareOfQuiet = 4, kLongestStreamWaitMs = 250;
// What another thread has of a stream comes soon. Sealed without it, it would lie apart from what follows it for good.
constexpr std::uint64_t kForGap = 16 << 20;
constexpr std::uint64_t kFast = 500 << 20;             // bytes a second: there a chunk costs little
constexpr std::uint64_t kAssumedBandwidth = 10 << 20;  // of a slow card, until it is measured
constexpr std::uint64_t kShareOfRoom = 16;             // room is scarce before what waits has become much of it

std::uint64_t rate_of(const SealView& view) { return view.bytes_per_second ? view.bytes_per_second : kAssumedBandwidth; }

// Of the time since the last sync `share`, but not longer than that.
std::uint64_t worth(const SealView& view, std::uint64_t share, std::uint64_t longest_ms) {
  return rate_of(view) / 1000 * std::min(view.quiet_ns / 1'000'000 / share, longest_ms);
}

std::uint64_t bounded(std::uint64_t bytes, const SealView& view) {
  return std::max(std::min(bytes, view.room / kShareOfRoom), kLeastUnsealed);
}

std::uint64_t most_of_stream(const SealView& view) {
  const std::uint64_t worthwhile = worth(view, kStreamShareOfQuiet, kLongestStreamWaitMs);
  const std::uint64_t for_gap = view.stream_has_gap ? std::min(worthwhile, kForGap) : 0;
  if (rate_of(view) >= kFast && !view.seeks) return bounded(kLeastUnsealed + for_gap, view);
  const std::uint64_t most = view.seeks ? kStreamBytesOfSeeks : kStreamBytes;
  return bounded(std::min(worthwhile, most) + for_gap, view);
}

}  // namespace

std::uint64_t most_unsealed(const SealView& view) {
  const std::uint64_t usual = std::max(worth(view, kShareOfQuiet, kLongestWaitMs), rate_of(view) / 1000 * kShortestWaitMs);
  return bounded(std::max(usual, std::min(worth(view, kModestShareOfQuiet, kLongestModestWaitMs), kModestBytes)), view);
}

bool seal_is_due(const SealView& view) {
  if (view.stream >= most_of_stream(view) || view.payload - std::min(view.stream, view.payload) >= most_unsealed(view)) return true;
  return view.held >= std::max(view.memory, 2 * kLeastUnsealed);
}

std::uint64_t SyncTimes::since_last_ns(std::uint64_t now_ns) const {
  return now_ns - std::min(now_ns, last_ns_.load(std::memory_order_relaxed));  // another thread's may be later
}

// --- on a mount -----------------------------------------------------------------------------------------------------------

SealTiming::SealTiming(const Parts& parts) : parts_(parts), sync_times_(parts.clock.monotonic_ns()) {}

void SealTiming::note_sync() { sync_times_.note(parts_.clock.monotonic_ns()); }

void SealTiming::look(io::Reactor* reactor) {
  if (is_due()) (void)parts_.seals.seal(checkpoint::Seals::Purpose::append, reactor);
}

bool SealTiming::is_due() const {
  const changes::Unsealed& unsealed = parts_.staging.unsealed();
  if (unsealed.held_bytes() < kLeastUnsealed) return false;  // as mostly
  SealView view;
  view.payload = unsealed.payload_bytes();
  view.held = unsealed.held_bytes();
  view.stream = unsealed.stream_bytes();
  view.quiet_ns = sync_times_.since_last_ns(parts_.clock.monotonic_ns());
  view.bytes_per_second = parts_.log.flow().bytes_per_second();
  view.memory = parts_.space.memory_beside_changes();
  view.room = std::uint64_t{parts_.segments.clean()} * parts_.segments.geometry().blocks << kBlockShift;
  view.stream_has_gap = unsealed.stream_has_gap();
  view.seeks = parts_.device_seeks;
  return seal_is_due(view);
}

}  // namespace varve::jobs
