#include "store/checkpoints.h"

#include "base/invariant.h"
#include "log/log.h"
#include "store/checkpoint.h"
#include "store/faults.h"
#include "store/log_clock.h"
#include "store/protection.h"
#include "store/readers.h"
#include "store/store.h"
#include "store/superblock_keeper.h"
#include "store/waiters.h"

namespace varve::store {

Checkpoints::Checkpoints(Store& store)
    : store_(store),
      protection_(std::make_unique<Protection>(store)),
      readers_(std::make_unique<Readers>(store)),
      settled_(store.super().serial.v),
      node_head_(store.super().node_head.rest) {}

Checkpoints::~Checkpoints() = default;

Status Checkpoints::make(const CheckpointRequest& request) {
  Status status;
  {
    const Lock one(mutex_);
    if (store_.faults().read_only()) return store_.faults().refusal();
    INVARIANT(!running_);
    running_ = true;
    status = make_one(request);
    running_ = false;
  }
  store_.faults().settle_alarm();
  if (!status.ok()) store_.faults().go_read_only(status.error());
  if (store_.faults().read_only()) store_.log().give_up();
  store_.waiters().wake();
  return status;
}

Status Checkpoints::make_one(const CheckpointRequest& request) {
  Checkpoint checkpoint(store_, request);
  protection_->look_who_uses_them();
  TRY(checkpoint.freeze());
  // The log is on its way to the device while the trees are merged; the first chunk may wait for its epoch.
  TRY(write_epoch_if_due());
  TRY(checkpoint.complete());
  readers_->count();
  protection_->tell_who_lost_them();
  return {};
}

Serial Checkpoints::next() const {
  const bool is_running = running_.load();  // asked first: one that ends just now counts as settled
  return settled() + (is_running ? 2 : 1);
}

std::uint64_t Checkpoints::log_blocks_since() const {
  const std::uint64_t before = log_blocks_at_freeze_;  // first: all of them only grow, and a checkpoint may freeze meanwhile
  return store_.log().blocks_taken() - before;
}

Status Checkpoints::write_epoch() {
  const Lock one(mutex_);
  return write_epoch_if_due();
}

Status Checkpoints::write_epoch_if_due() {
  if (!epoch_due_) return {};
  format::Superblock super = store_.superblocks().written();
  super.epoch = store_.log().epoch();
  super.clean = false;
  format::allow_chunks(super, store_.log().chunks_allowed());
  ++super.lifetime.mounts;
  if (Status status = store_.write_superblocks(super); !status.ok()) {
    store_.log().durability().fail(status.error());
    return status;
  }
  INVARIANT(super.epoch != 0);
  epoch_due_ = false;
  store_.log().epoch_written();
  return {};
}

void Checkpoints::ask_for_epoch() {
  epoch_due_ = true;
  if (epoch_due_call_) epoch_due_call_();
}

void Checkpoints::note_pointless_round() {
  ++pointless_rounds_;
  if (!store_.segments().discarding()) store_.waiters().wake();
}

void Checkpoints::leave() {
  log::SegmentTable& segments = store_.segments();
  if (!node_head_.blocks || segments.geometry().segment_of(node_head_.start).v < segments.end().limit()) return;
  segments.close(segments.geometry().segment_of(node_head_.start), store_.log_clock().now());
  node_head_ = {};
}

void Checkpoints::note_settled(Serial serial) {
  INVARIANT(serial.v == settled_.load() + 1);
  settled_ = serial.v;
}

}  // namespace varve::store
