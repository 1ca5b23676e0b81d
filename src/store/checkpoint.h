// One checkpoint: freeze, merge, close the maps, write, flush, superblocks (docs/design.md 7, 8).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "store/checkpoints.h"
#include "store/delta_editor.h"
#include "store/evacuees.h"
#include "store/node_writer.h"
#include "store/segment_ledger.h"
#include "store/snapshot_merge.h"
#include "store/store.h"
#include "store/trees.h"

namespace varve::store {

class Checkpoint {
 public:
  Checkpoint(Store& store, const CheckpointRequest& request)
      : store_(store), request_(request), evacuate_(request.evacuate) {}
  // What comes first: everything acknowledged so far is in the log, and belongs to this checkpoint.
  Status freeze() EXCLUDES(the_gate);
  // The rest, while operations go on.
  Status complete() EXCLUDES(the_gate);

 private:
  std::uint64_t choose_evacuees() REQUIRES(the_gate);  // how many nodes they hold, at most
  Status reshape_maps();
  void take_snapshot_changes() REQUIRES(the_gate);
  Status take_snapshot_change(const SnapshotChange& change) REQUIRES(the_gate);
  void begin_snapshot(std::string name, bool automatic) REQUIRES(the_gate);
  Status keep(SnapshotItem& item) REQUIRES(the_gate);
  std::string unused_name(const Timestamp& made);  // of an automatic one
  void begin_snapshots();
  Status merge();
  Status close_maps();
  struct Lot {  // of blocks that have their entries in some leaves of the reverse map
    BlockAddr first, end;
    bool contains(BlockAddr address) const { return address >= first && address < end; }
  };
  Status lose_owners(BlockAddr address, const Error& why);
  Status write_reverse_leaves();
  Status fill_reverse_map(const Lot& lot, std::size_t nodes);
  Status fill_free_map();
  Status for_each_new_block(const std::function<Status(Ino, const BlockEntry&)>& visit) const;
  void count_nodes(std::uint64_t nodes);
  void note_streams();
  Status write_image();
  Status commit();
  void publish();
  bool reshapes() const { return super_.device_blocks != before_.device_blocks; }
  void publish_snapshots();
  void detach_inodes();

  Store& store_;
  const CheckpointRequest& request_;
  std::vector<SegmentId> evacuate_;  // as many of them as there is room for
  format::Superblock super_;  // the one being made, and…
  struct {
    std::uint64_t device_blocks = 0, limit = 0;
    BlockAddr cleared_from;  // the reverse map; none: nowhere
  } before_;  // …what the one before it said; up to where there is anything
  std::uint64_t frozen_generation_ = 0;
  Lsn lsn_;
  std::unique_ptr<BlockingSource> source_;
  std::unique_ptr<NodeWriter> writer_;
  std::unique_ptr<Evacuees> evacuees_;
  std::unique_ptr<DeltaEditor> editor_;
  MergeOptions merge_options_;
  struct SnapshotPlan {  // of what was asked for before the freeze
    SnapshotList list;
    std::vector<Serial> changed;
    std::vector<std::pair<Snapshots::Ticket, Status>> answers;
    std::optional<SnapshotMerge::Creation> creation;
    std::vector<HeldMove> moves;
    DeletionStep deletion;
    bool changes_names = false;
    bool keeps = false;  // an automatic one stays for good
    std::unique_ptr<SnapshotMerge> merge;
  };
  std::unique_ptr<SnapshotPlan> plan_;  // none: nothing here has to do with snapshots
  std::unique_ptr<MapEditor> reverse_, free_;
  std::unique_ptr<SegmentLedger> ledger_;
  std::shared_ptr<TreeView> next_;
  SegmentLedger::Changed changed_segments_;
  BlockAddr image_address_;
  std::uint64_t lost_nodes_ = 0;  // of the reverse map
};

}  // namespace varve::store
