// Rounds of cleaning where room is short, and checkpoints: when they are due, and how one follows the other. By the thread that makes
// checkpoints, but for what says otherwise.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/result.h"
#include "jobs/parts.h"

namespace varve::jobs {

// Are clean segments short, and does moving blocks help?
class Shortage {
 public:
  struct Parts {
    const segments::SegmentTable& segments;
    const segments::LogClock& log_clock;
    const space::Space& space;
    const space::HoleFeeder& hole_feeder;
    const snapshots::Snapshots& snapshots;
    const checkpoint::Checkpoints& checkpoints;
    const cleaner::Cleaner& cleaner;
    bool cleans = false;
  };
  explicit Shortage(const Parts& parts);

  std::uint64_t clean() const;        // segments
  std::uint64_t reclaimable() const;  // by a checkpoint alone
  std::uint64_t written() const;      // blocks, by users
  bool is_low() const;
  // It is low, somebody has written since the mount, and nobody has just found that nothing can be done about it (H33). Any thread.
  bool is_due() const;
  // The same after a checkpoint that comes now, or soon after it. Any thread.
  bool will_be_due() const;
  // The cleaner lags behind, and no checkpoint releases enough by itself.
  bool lags() const;
  bool cleaning_helps() const;
  void note_futile();  // not before users have written some segments more

 private:
  std::uint64_t low_mark() const;  // clean segments

  const Parts parts_;
  std::atomic<std::uint64_t> futile_until_;  // log clock before which looking for space is pointless, or nobody needs any
};

// When a checkpoint is due that no operation waits for. Any thread.
class CheckpointTiming {
 public:
  struct Parts {
    const changes::Changes& changes;
    const checkpoint::Checkpoints& checkpoints;
    checkpoint::Protection& protection;
    const segments::SegmentTable& segments;
    const snapshots::Snapshots& snapshots;
    const space::HoleFeeder& hole_feeder;
    const space::Space& space;
    std::uint64_t most_records = 0;
  };
  explicit CheckpointTiming(const Parts& parts) : parts_(parts) {}

  bool is_due() const;
  bool deletion_is_left() const;  // of a snapshot: each checkpoint gives back a part
  // It changes something about snapshots, whatever else has changed.
  bool is_for_snapshots() const;

 private:
  const Parts parts_;
};

// A round and the checkpoint after it; or a checkpoint alone.
class Rounds {
 public:
  struct Parts {
    Requests& requests;
    Shortage& shortage;
    const CheckpointTiming& timing;
    checkpoint::Checkpoints& checkpoints;
    cleaner::Cleaner& cleaner;
    checkpoint::Protection& protection;
    const changes::Staging& staging;
  };
  explicit Rounds(const Parts& parts) : parts_(parts) {}

  bool is_low() const;         // on room, so that something can be done about it. Any thread
  bool wants_checkpoint() const;  // whatever there is room for. Any thread
  bool is_due(bool low) const;
  bool is_pending();  // without a word
  void run(bool low, bool waited_for);

 private:
  bool clean(bool waited_for, checkpoint::CheckpointRequest& request);

  const Parts parts_;
};

}  // namespace varve::jobs
