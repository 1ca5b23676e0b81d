// Telling the device what a checkpoint has made free. Thread-safe.
//
// Segments that are free as a whole wait for their discard before they are handed out. Dead blocks of others wait in a queue, and
// nothing waits for them: when the turn of a run comes, its segment may have been written again, and then it is left out.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "base/mutex.h"
#include "format/chunk.h"
#include "tree/dead_runs.h"

namespace varve {
class WaitList;
}

namespace varve::device {
class IoContext;
}

namespace varve::segments {
class SegmentTable;
}

namespace varve::space {

class Discards {
 public:
  Discards(device::IoContext& io, segments::SegmentTable& segments, WaitList& waiters, bool wanted);

  bool wanted() const { return wanted_; }
  // For a checkpoint to collect dead blocks in, if they are wanted.
  std::optional<tree::DeadRuns> dead_runs() const;
  // `freed`: segments that SegmentTable holds back until their discard has come, in ascending order. Neighbours go in one request.
  // `dead`: runs of others that are free in the checkpoint that froze `settled`; it has settled.
  // A discard is a hint: whether it succeeds does not matter.
  void start(const std::vector<SegmentId>& freed, const std::vector<format::Run>& dead, std::uint64_t settled);
  // Tells that so many neighbours have been discarded: those that are free as a whole can be handed out.
  void came(SegmentId first, std::uint64_t count);

 private:
  struct Discard;
  struct Waiting {
    format::Run run;
    std::uint64_t settled;
  };

  void send(SegmentId first, std::uint64_t count, const format::Run& run, bool queued);
  void start_segments(const std::vector<SegmentId>& freed);
  std::optional<Waiting> next() EXCLUDES(mutex_);
  void send_queued() EXCLUDES(mutex_);

  device::IoContext& io_;
  segments::SegmentTable& segments_;
  WaitList& waiters_;
  const bool wanted_;
  Mutex mutex_;
  std::deque<Waiting> queue_ GUARDED_BY(mutex_);
  unsigned in_flight_ GUARDED_BY(mutex_) = 0;  // of the queue
  bool sending_ GUARDED_BY(mutex_) = false;    // a thread takes from the queue
};

}  // namespace varve::space
