// One checkpoint: freeze, merge, close the maps, write, flush, superblocks (docs/design.md 7, 8).
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/checkpoints.h"
#include "checkpoint/evacuees.h"
#include "checkpoint/new_maps.h"
#include "checkpoint/snapshot_plan.h"
#include "tree/node_writer.h"
#include "tree/trees.h"

namespace varve::checkpoint {

class Checkpoint {
 public:
  // `all`: which it is one of.
  Checkpoint(const CheckpointParts& parts, Checkpoints& all, const CheckpointRequest& request);
  // What comes first: everything acknowledged so far is in the log, and belongs to this checkpoint.
  Status freeze() EXCLUDES(the_gate);
  // The rest, while operations go on.
  Status complete() EXCLUDES(the_gate);

 private:
  void draft_superblock() REQUIRES(the_gate);
  std::uint64_t choose_evacuees() REQUIRES(the_gate);  // how many nodes they hold, at most
  Status find_evacuees();
  Status reshape_maps();
  Status merge();
  Status write_maps();
  void count_nodes(std::uint64_t nodes);
  void note_streams();
  Status write_image();
  Status wait_for_log();
  Status commit();
  void publish();
  void detach_inodes();
  bool reshapes() const { return super_.device_blocks != blocks_before_; }
  NewMaps::Others others() const { return {plan_.arrived(), evacuees_->of_maps(), super_.image.address}; }

  const CheckpointParts& parts_;
  Checkpoints& all_;
  const CheckpointRequest& request_;
  std::vector<SegmentId> evacuate_;  // as many of them as there is room for
  format::Superblock super_;         // the one being made
  std::uint64_t blocks_before_ = 0;  // the size that the one before it says
  std::uint64_t limit_ = 0;          // there is nothing in this segment and behind it
  std::uint64_t frozen_generation_ = 0;
  Lsn lsn_;
  SnapshotPlan plan_;
  std::unique_ptr<tree::BlockingSource> source_;
  std::unique_ptr<tree::NodeWriter> writer_;
  std::unique_ptr<Evacuees> evacuees_;
  std::unique_ptr<NewMaps> maps_;
  tree::MergeOptions merge_options_;
  bool protects_files_ = false;  // immutable or append-only ones: the superblock says so
  std::shared_ptr<tree::TreeView> next_;
  tree::SegmentLedger::Changed changed_segments_;
};

}  // namespace varve::checkpoint
