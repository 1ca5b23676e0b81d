// When checkpoints are made, and what is known of the last one. One at a time, by one thread; everything else may be asked by any.
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "base/clock.h"
#include "base/gate.h"
#include "base/mutex.h"
#include "base/result.h"
#include "base/tunable.h"
#include "base/types.h"
#include "format/chunk.h"

namespace varve {
class WaitList;
}

namespace varve::changes {
class Changes;
class InodeTable;
class Staging;
}  // namespace varve::changes

namespace varve::device {
class Faults;
class IoContext;
}  // namespace varve::device

namespace varve::format {
struct LifetimeCounters;
}

namespace varve::log {
class Log;
}

namespace varve::segments {
class LogClock;
class SegmentTable;
struct Counters;
}  // namespace varve::segments

namespace varve::snapshots {
class Snapshots;
}

namespace varve::space {
class Charge;
class Discards;
class HoleFeeder;
class Space;
}  // namespace varve::space

namespace varve::tree {
class Trees;
}

namespace varve::checkpoint {

class Protection;
class Readers;
class Sealer;
class SuperblockKeeper;

// A checkpoint is where all parts of a store come together.
struct CheckpointParts {
  Gate& gate;
  Clock& clock;
  Tunable<std::size_t>::View memory_bytes;
  device::IoContext& io;
  device::Faults& faults;
  segments::Counters& counters;
  segments::SegmentTable& segments;
  segments::LogClock& log_clock;
  log::Log& log;
  SuperblockKeeper& superblocks;
  tree::Trees& trees;
  snapshots::Snapshots& snapshots;
  changes::Changes& changes;
  changes::InodeTable& inodes;
  changes::Staging& staging;
  space::Charge& charge;
  space::Space& space;
  space::HoleFeeder& hole_feeder;
  space::Discards& discards;
  WaitList& waiters;
  Sealer& sealer;
  Readers& readers;
  Protection& protection;
};

struct CheckpointRequest {
  bool clean = false;               // unmounting
  std::vector<SegmentId> evacuate;  // rewrite the nodes that stand in these
  std::uint64_t device_blocks = 0;  // give the filesystem this size; 0: it stays. What goes is empty (SegmentTable::in_use_from)
};

class Checkpoints {
 public:
  explicit Checkpoints(const CheckpointParts& parts);

  // Errc::read_only, or what went wrong: then the filesystem is read-only.
  Status make(const CheckpointRequest& request) EXCLUDES(mutex_);
  bool running() const { return running_.load(std::memory_order_relaxed); }
  Serial settled() const;
  format::LifetimeCounters lifetime() const;  // of all mounts together
  // Of the first checkpoint that begins from now on: one that is under way may have frozen already.
  Serial next() const;
  // Was there room to evacuate all that the last checkpoint which was asked to should have?
  bool evacuation_was_cut() const { return evacuation_was_cut_; }
  // The log's blocks since it froze.
  std::uint64_t log_blocks_since() const;

  // Writes this mount's epoch into the superblocks, which releases the first chunk. Blocks; never beside a checkpoint, whose
  // superblocks it would replace by older ones.
  Status write_epoch() EXCLUDES(mutex_);
  bool epoch_due() const { return epoch_due_.load(); }
  void on_epoch_due(std::function<void()> call) { epoch_due_call_ = std::move(call); }  // before there are other threads
  void ask_for_epoch();  // by the log

  // For want of space: nothing is to be released. Waiters are told when the last segment that is being discarded has come.
  void note_pointless_round();
  // How often space has been looked for so far: those times, and checkpoints.
  std::uint64_t rounds() const { return settled().v + pointless_rounds_.load(); }

  // --- for a Checkpoint ---
  const format::Run& node_head() const { return node_head_; }  // where the next one's nodes go
  void set_node_head(const format::Run& rest) { node_head_ = rest; }
  void leave();  // the node head's segment, if it is at or beyond the limit (SegmentTable)
  void note_frozen(std::uint64_t log_blocks) { log_blocks_at_freeze_ = log_blocks; }
  void note_evacuation(bool was_cut) { evacuation_was_cut_ = was_cut; }
  void note_settled(Serial serial);

 private:
  Status make_one(const CheckpointRequest& request) REQUIRES(mutex_);
  Status write_epoch_if_due() REQUIRES(mutex_);

  const CheckpointParts parts_;
  Mutex mutex_{LockRank::checkpoints};  // of threads that write superblocks, and first look what is in them
  std::atomic<bool> running_{false}, epoch_due_{false}, evacuation_was_cut_{false};
  std::atomic<std::uint64_t> pointless_rounds_{0}, log_blocks_at_freeze_{0};
  std::function<void()> epoch_due_call_;
  format::Run node_head_;  // of the thread that makes them
};

}  // namespace varve::checkpoint
