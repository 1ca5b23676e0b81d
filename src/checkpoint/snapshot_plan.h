// One checkpoint's plan for snapshots, besides its merge: it takes what was asked for before the freeze, and publishes how it ended.
// For the thread that makes the checkpoint, in the order of the functions below.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/gate.h"
#include "snapshots/deletion_step.h"
#include "snapshots/snapshot_merge.h"
#include "snapshots/snapshots.h"
#include "tree/trees.h"

namespace varve::changes {
class Changes;
}

namespace varve::segments {
class LogClock;
}

namespace varve::space {
class Charge;
}

namespace varve::checkpoint {

class Protection;

class SnapshotPlan {
 public:
  struct Parts {
    Clock& clock;
    segments::LogClock& log_clock;
    tree::Trees& trees;
    snapshots::Snapshots& snapshots;
    changes::Changes& changes;
    const space::Charge& charge;
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
  void set_deletion(const snapshots::DeletionStep& step) { deletion_ = step; }
  const snapshots::DeletionStep& deletion() const { return deletion_; }

  struct Merging {
    tree::NodeSource& source;
    tree::NodeWriter& writer;
    tree::SegmentLedger& ledger;
    Serial serial;
    std::size_t memory_bytes;  // of the engine
  };
  snapshots::SnapshotMerge& begin_merge(const Merging& merging);
  Status finish_merge(const tree::MergeOptions& options, tree::TreeView& next) {
    return merge_->finish(creation_, deletion_, options, next);
  }
  std::span<const snapshots::HeldMove> arrived() const {
    return any_ ? std::span(merge_->arrived()) : std::span<const snapshots::HeldMove>();
  }
  // In `next` all nodes are counted by now.
  void count_shared_nodes(tree::TreeView& next) const;
  void publish() REQUIRES(the_gate);

 private:
  Status carry_out(const snapshots::SnapshotChange& change) REQUIRES(the_gate);
  Status create(const std::string& name) REQUIRES(the_gate);
  Status rename(format::SnapshotItem* item, const snapshots::SnapshotChange& change) REQUIRES(the_gate);
  void begin(std::string name, bool automatic) REQUIRES(the_gate);
  Status keep(format::SnapshotItem& item) REQUIRES(the_gate);
  std::string unused_name(const Timestamp& made);  // of an automatic one

  const Parts parts_;
  bool any_ = false;
  snapshots::SnapshotList list_;
  std::vector<Serial> changed_;
  std::vector<std::pair<snapshots::Snapshots::Ticket, Status>> answers_;
  std::optional<snapshots::SnapshotMerge::Creation> creation_;
  std::vector<snapshots::HeldMove> moves_;
  snapshots::DeletionStep deletion_;
  bool changes_names_ = false;
  bool keeps_ = false;  // an automatic one stays for good
  std::unique_ptr<snapshots::SnapshotMerge> merge_;
};

}  // namespace varve::checkpoint
