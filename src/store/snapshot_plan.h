// What one checkpoint does about snapshots besides its merge: it takes what was asked for before the freeze, and publishes how it ended.
// For the thread that makes the checkpoint, in the order of the functions below.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "log/gate.h"
#include "store/demand.h"
#include "store/snapshot_merge.h"
#include "store/snapshots.h"
#include "store/trees.h"

namespace varve::store {

class Changes;
class Charge;
class LogClock;
class Protection;
using log::the_gate;

class SnapshotPlan {
 public:
  struct Parts {
    Clock& clock;
    LogClock& log_clock;
    Trees& trees;
    Snapshots& snapshots;
    Changes& changes;
    const Charge& charge;
    Protection& protection;
  };
  explicit SnapshotPlan(const Parts& parts) : parts_(parts) {}

  // All that was acknowledged before somebody asked is sealed by now, and in the trees that this checkpoint makes. `last`: no other one
  // follows in this mount. Afterwards: has this checkpoint to do with snapshots at all? If not, nothing below is called.
  void take(bool last) REQUIRES(the_gate);
  bool any() const { return any_; }

  bool has_moves() const { return !moves_.empty(); }  // that the cleaner has made
  bool has_deletion() const { return list_.first_deleting() || parts_.snapshots.deletion_is_left(); }
  // How much of what was deleted it gives back.
  void set_deletion(const DeletionStep& step) { deletion_ = step; }
  const DeletionStep& deletion() const { return deletion_; }

  struct Merging {
    NodeSource& source;
    NodeWriter& writer;
    SegmentLedger& ledger;
    Serial serial;
    std::size_t memory_bytes;  // of the engine
  };
  SnapshotMerge& begin_merge(const Merging& merging);
  Status finish_merge(const MergeOptions& options, TreeView& next) { return merge_->finish(creation_, deletion_, options, next); }
  std::span<const HeldMove> arrived() const { return any_ ? std::span(merge_->arrived()) : std::span<const HeldMove>(); }
  // In `next` all nodes are counted by now.
  void count_shared_nodes(TreeView& next) const;
  void publish() REQUIRES(the_gate);

 private:
  Status carry_out(const SnapshotChange& change) REQUIRES(the_gate);
  Status create(const std::string& name) REQUIRES(the_gate);
  Status rename(SnapshotItem* item, const SnapshotChange& change) REQUIRES(the_gate);
  void begin(std::string name, bool automatic) REQUIRES(the_gate);
  Status keep(SnapshotItem& item) REQUIRES(the_gate);
  std::string unused_name(const Timestamp& made);  // of an automatic one

  const Parts parts_;
  bool any_ = false;
  SnapshotList list_;
  std::vector<Serial> changed_;
  std::vector<std::pair<Snapshots::Ticket, Status>> answers_;
  std::optional<SnapshotMerge::Creation> creation_;
  std::vector<HeldMove> moves_;
  DeletionStep deletion_;
  bool changes_names_ = false;
  bool keeps_ = false;  // an automatic one stays for good
  std::unique_ptr<SnapshotMerge> merge_;
};

}  // namespace varve::store
