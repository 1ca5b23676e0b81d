#include "checkpoint/checkpoints.h"

#include "base/invariant.h"
#include "base/wait_list.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/protection.h"
#include "checkpoint/readers.h"
#include "checkpoint/superblock_keeper.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "log/log.h"
#include "segments/counters.h"
#include "segments/log_clock.h"
#include "snapshots/snapshots.h"

namespace varve::checkpoint {

Checkpoints::Checkpoints(const CheckpointParts& parts)
    : parts_(parts), node_head_(parts.superblocks.found().node_head.rest) {
  parts.log.note_settled(parts.superblocks.found().serial);
}

Status Checkpoints::make(const CheckpointRequest& request) {
  Status status;
  {
    const Lock one(mutex_);
    if (parts_.faults.read_only()) return parts_.faults.refusal();
    INVARIANT(!running_);
    running_ = true;
    status = make_one(request);
    running_ = false;
  }
  parts_.faults.settle_alarm();
  if (!status.ok()) parts_.faults.go_read_only(status.error());
  if (parts_.faults.read_only()) parts_.log.give_up();
  parts_.waiters.wake();
  return status;
}

Status Checkpoints::make_one(const CheckpointRequest& request) {
  Checkpoint checkpoint(parts_, *this, request);
  parts_.protection.look_who_uses_them();
  TRY(checkpoint.freeze());
  // The log is on its way to the device while the trees are merged; the first chunk may wait for its epoch.
  TRY(write_epoch_if_due());
  TRY(checkpoint.complete());
  parts_.readers.count();
  parts_.protection.tell_who_lost_them();
  return {};
}

Serial Checkpoints::settled() const { return parts_.log.settled(); }

Serial Checkpoints::next() const {
  const bool is_running = running_.load();  // asked first: one that ends just now counts as settled
  return settled() + (is_running ? 2 : 1);
}

std::uint64_t Checkpoints::log_blocks_since() const {
  const std::uint64_t before = log_blocks_at_freeze_;  // first: all of them only grow, and a checkpoint may freeze meanwhile
  return parts_.log.blocks_taken() - before;
}

Status Checkpoints::write_epoch() {
  const Lock one(mutex_);
  return write_epoch_if_due();
}

Status Checkpoints::write_epoch_if_due() {
  if (!epoch_due_) return {};
  format::Superblock super = parts_.superblocks.written();
  super.epoch = parts_.log.epoch();
  super.clean = false;
  format::allow_chunks(super, parts_.log.chunks_allowed());
  ++super.lifetime.mounts;
  if (Status status = parts_.superblocks.write(super, [this] { return parts_.log.durability().flush_now(); }); !status.ok()) {
    parts_.log.durability().fail(status.error());
    return status;
  }
  INVARIANT(super.epoch != 0);
  epoch_due_ = false;
  parts_.log.epoch_written();
  return {};
}

void Checkpoints::ask_for_epoch() {
  epoch_due_ = true;
  if (epoch_due_call_) epoch_due_call_();
}

void Checkpoints::note_pointless_round() {
  ++pointless_rounds_;
  if (!parts_.segments.discarding()) parts_.waiters.wake();
}

void Checkpoints::leave() {
  segments::SegmentTable& segments = parts_.segments;
  if (!node_head_.blocks || segments.geometry().segment_of(node_head_.start).v < segments.end().limit()) return;
  segments.close(segments.geometry().segment_of(node_head_.start), parts_.log_clock.now());
  node_head_ = {};
}

void Checkpoints::note_settled(Serial serial) {
  INVARIANT(serial == settled() + 1);
  parts_.log.note_settled(serial);
}

format::LifetimeCounters Checkpoints::lifetime() const {
  format::LifetimeCounters sum = parts_.superblocks.found().lifetime;
  const format::Superblock written = parts_.superblocks.written();
  sum.mounts = written.lifetime.mounts;
  sum.recoveries = written.lifetime.recoveries;
  sum.checkpoints = written.lifetime.checkpoints;
  sum.errors += parts_.faults.counts().all();
  sum.user_blocks += parts_.counters.user_blocks;
  sum.cleaned_blocks += parts_.counters.cleaned_blocks;
  sum.node_blocks += parts_.counters.node_blocks;
  sum.chain_blocks += parts_.log.header_blocks();
  sum.segments_cleaned += parts_.counters.segments_cleaned;
  sum.device_bytes += parts_.io.counts()[io::IoKind::write].bytes;
  return sum;
}

}  // namespace varve::checkpoint
