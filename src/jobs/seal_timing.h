// How much may wait in memory before it is sealed without anybody asking for it. What is removed or overwritten meanwhile is never
// written, so waiting pays. But a sync writes all that was acknowledged before it, of all files: the longer ago the last one
// was, the longer the next one may take.
#pragma once

#include <atomic>
#include <cstdint>

#include "jobs/parts.h"

namespace varve::jobs {

struct SealView {
  std::uint64_t payload = 0, held = 0, stream = 0;  // changes::Unsealed
  std::uint64_t quiet_ns = 0;          // since the last sync
  std::uint64_t bytes_per_second = 0;  // that the device takes; 0: not known yet
  std::uint64_t memory = 0;            // bytes that changes leave of theirs
  std::uint64_t room = 0;              // bytes in clean segments
  bool stream_has_gap = false;         // changes::Unsealed
  bool seeks = false;                  // a rotational device
};

// Pure.
bool seal_is_due(const SealView& view);
std::uint64_t most_unsealed(const SealView& view);  // bytes of payload, whatever memory it keeps; never less than kLeastUnsealed
inline constexpr std::uint64_t kLeastUnsealed = 1u << 20;

// When somebody last waited for a sync. Any thread.
class SyncTimes {
 public:
  explicit SyncTimes(std::uint64_t now_ns) : last_ns_(now_ns) {}

  void note(std::uint64_t now_ns) { last_ns_.store(now_ns, std::memory_order_relaxed); }
  std::uint64_t since_last_ns(std::uint64_t now_ns) const;

 private:
  std::atomic<std::uint64_t> last_ns_;
};

// Seals on a mount. Any thread.
class SealTiming {
 public:
  struct Parts {
    Clock& clock;
    log::Log& log;
    const segments::SegmentTable& segments;
    const space::Space& space;
    const changes::Staging& staging;
    checkpoint::Seals& seals;
    bool device_seeks = false;
  };
  explicit SealTiming(const Parts& parts);

  // Seals if that is due. `reactor`: of the calling thread, or null.
  void look(io::Reactor* reactor = nullptr);
  void note_sync();  // somebody waits until all that was acknowledged is durable

 private:
  bool is_due() const;

  const Parts parts_;
  SyncTimes sync_times_;
};

}  // namespace varve::jobs
