#include "checkpoint/checkpoint.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/invariant.h"
#include "changes/changes.h"
#include "changes/delta_editor.h"
#include "checkpoint/sealer.h"
#include "checkpoint/superblock_keeper.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "log/chain.h"
#include "log/log.h"
#include "segments/counters.h"
#include "segments/log_clock.h"
#include "space/discards.h"
#include "space/hole_feeder.h"
#include "space/space.h"

namespace varve::checkpoint {

using format::TreeId;

namespace {
SnapshotPlan::Parts plan_parts(const CheckpointParts& parts) {
  return {parts.clock, parts.log_clock, parts.trees, parts.snapshots, parts.changes, parts.charge, parts.protection};
}
}  // namespace

Checkpoint::Checkpoint(const CheckpointParts& parts, Checkpoints& all, const CheckpointRequest& request)
    : parts_(parts), all_(all), request_(request), evacuate_(request.evacuate), plan_(plan_parts(parts)) {}

Status Checkpoint::complete() {
  TRY(merge());
  TRY(write_maps());
  TRY(write_image());
  TRY(commit());
  publish();
  detach_inodes();
  return {};
}

Status Checkpoint::freeze() {
  const Gate::Closure closed(parts_.gate);
  const segments::SegmentTable& segments = parts_.segments;
  const std::uint64_t limit = segments.end().limit(), count = segments.geometry().count;
  limit_ = limit < count && segments.end().in_use_from(limit) == 0 ? limit : count;
  parts_.sealer.give_blocks_to_tails();
  lsn_ = TRY(parts_.sealer.run(false, nullptr));
  parts_.hole_feeder.freeze();
  plan_.take(request_.clean);
  const std::uint64_t evacuated = choose_evacuees();
  if (plan_.any() && !plan_.has_moves() && evacuate_.empty()) plan_.set_deletion(parts_.space.deletion_step(plan_.has_deletion()));
  parts_.space.promise_nodes(evacuated, plan_.deletion());
  frozen_generation_ = parts_.segments.freeze();
  INVARIANT(std::as_const(parts_.changes).active().generation() == frozen_generation_);
  parts_.changes.freeze(parts_.segments.generation());
  draft_superblock();
  all_.note_frozen(parts_.log.blocks_taken());
  return {};
}

void Checkpoint::draft_superblock() {
  super_ = parts_.superblocks.written();
  INVARIANT(super_.serial == all_.settled());
  blocks_before_ = super_.device_blocks;
  if (request_.device_blocks) {
    super_.device_blocks = request_.device_blocks;
    super_.segments = format::segments_in(super_.device_blocks, super_.first_segment, super_.segment_blocks);
    INVARIANT(super_.segments >= limit_);
  }
  super_.serial = Serial{super_.serial.v + 1};
  super_.epoch = parts_.log.epoch();
  const log::ChainPosition position = parts_.log.position();
  INVARIANT(position.lsn == lsn_);
  super_.lsn = position.lsn;
  super_.chain_crc = position.crc;
  super_.chain = position.rest;
  super_.next_run = position.next_run;
  super_.clock = parts_.log_clock.now();
  super_.next_ino = parts_.staging.next_ino();
  for (unsigned g = 0; g < format::kMaxGroups; ++g) super_.heads[g].rest = parts_.log.heads().rests()[g];
  super_.group_centres = parts_.superblocks.group_centres();
  super_.clean = request_.clean;
  // It stays: nobody looks whether there is a tail left.
  if (parts_.staging.tail_limits().kept) super_.features.incompat |= format::kIncompatTails;
  format::allow_chunks(super_, request_.clean ? format::Chunks::none : parts_.log.chunks_allowed());
}

// What there is no room for stays where it is: better than a checkpoint that ends halfway (H39). Segments of files go first:
// what counts as live in those is hardly ever a node, but what has been overwritten and nobody has looked up.
std::uint64_t Checkpoint::choose_evacuees() {
  const segments::SegmentTable& segments = parts_.segments;
  std::stable_partition(evacuate_.begin(), evacuate_.end(), [&](SegmentId id) { return segments.info(id).group == format::kGroupNodes; });
  // Another shape of the maps, or an end of them that is cleared, takes a way from the root to the last leaf in both.
  constexpr std::uint64_t kOfEnds = 32;
  std::uint64_t nodes = request_.device_blocks || limit_ < segments.geometry().count ? kOfEnds : 0;
  for (SegmentId segment : evacuate_) nodes += segments.info(segment).live();
  INVARIANT(parts_.staging.unsealed().payload_bytes() == 0 && parts_.staging.unsealed().deltas().empty());
  while (!evacuate_.empty() && !parts_.space.has_room_to_evacuate(nodes)) {
    const std::uint64_t live = segments.info(evacuate_.back()).live();
    INVARIANT(nodes >= live);
    nodes -= std::min(nodes, live);
    evacuate_.pop_back();
  }
  if (!request_.evacuate.empty()) all_.note_evacuation(evacuate_.size() < request_.evacuate.size());
  return nodes;
}

Status Checkpoint::find_evacuees() {
  evacuees_ = std::make_unique<Evacuees>(
      Evacuees::Parts{parts_.io.device(), parts_.segments, parts_.trees, *source_, parts_.faults, super_.identity, parts_.memory_bytes},
      evacuate_);
  if (evacuate_.empty()) return {};
  TRY(evacuees_->find());
  evacuees_->report_stuck();
  merge_options_.evacuate = [this](BlockAddr address) { return evacuees_->has(address); };
  merge_options_.evacuate_keys = evacuees_->of_inode_file();
  return {};
}

Status Checkpoint::reshape_maps() {
  if (reshapes()) return maps_->reshape(super_);
  return limit_ < parts_.segments.geometry().count ? maps_->clear_from(SegmentId{limit_}) : Status();
}

Status Checkpoint::merge() {
  changes::Delta& merged = parts_.changes.merging();
  merged.sort();
  const tree::TreeView& old = parts_.trees.own_view();
  source_ = std::make_unique<tree::BlockingSource>(parts_.trees.source());
  writer_ = std::make_unique<tree::NodeWriter>(parts_.io.device(), parts_.segments, parts_.trees.cache(),
                                         super_.identity, super_.serial, all_.node_head(), parts_.log_clock.now());
  TRY(find_evacuees());
  maps_ = std::make_unique<NewMaps>(NewMaps::Parts{parts_.io.device(), parts_.segments, old, merged, *source_, *writer_, parts_.faults},
                                    parts_.discards.dead_runs(), parts_.memory_bytes);
  TRY(reshape_maps());
  tree::SegmentLedger& ledger = maps_->ledger();
  snapshots::SnapshotMerge* const snapshots =
      plan_.any() ? &plan_.begin_merge({*source_, *writer_, ledger, super_.serial, parts_.memory_bytes}) : nullptr;
  changes::DeltaEditor editor(merged, old, *source_, super_.hash_key, [&](const format::Extent& extent, BlockAddr moved_to) {
    return snapshots ? snapshots->gone(extent, moved_to) : ledger.release(extent);
  }, snapshots != nullptr);
  next_ = std::make_shared<tree::TreeView>(old);
  next_->serial = super_.serial;
  next_->generation = frozen_generation_;
  next_->has_tails = super_.features.incompat & format::kIncompatTails;
  tree::NodeSink& sink = snapshots ? snapshots->sink() : *writer_;
  next_->inode_file = TRY(tree::merge_items(*source_, old.inode_file, editor, sink, merge_options_));
  next_->data_blocks += static_cast<std::uint64_t>(editor.totals().data_blocks);
  next_->reserved_blocks += static_cast<std::uint64_t>(editor.totals().reserved_blocks);
  next_->inodes += static_cast<std::uint64_t>(editor.totals().inodes);
  protects_files_ = editor.totals().protected_files;
  if (!snapshots) return {};
  merge_options_.evacuate_keys = evacuees_->of_snapshots();
  return plan_.finish_merge(merge_options_, *next_);
}

Status Checkpoint::write_maps() {
  TRY(maps_->close(others()));
  changed_segments_ = TRY(maps_->fill_free_map(others(), frozen_generation_));
  const std::int64_t live_change = maps_->ledger().live_change();
  INVARIANT(live_change >= 0 || next_->live_blocks >= static_cast<std::uint64_t>(-live_change));
  next_->live_blocks += static_cast<std::uint64_t>(live_change);
  return maps_->write(others(), *next_);
}

void Checkpoint::count_nodes(std::uint64_t nodes) {
  const bool first = parts_.trees.own_view().generation == 0;  // what a recovery has replayed has not been reckoned with
  parts_.space.note_written(nodes, !first);
}

// What was said stays, and what a mount option says is for that mount.
void Checkpoint::note_streams() {
  const format::DeviceProfile known = parts_.space.device_profile();
  if (known.streams_source != format::Source::measured) return;
  super_.device.streams = known.streams;
  super_.device.streams_source = known.streams_source;
  super_.features.compat |= format::kCompatDeviceProfile;
}

Status Checkpoint::write_image() {
  super_.inode_file = next_->inode_file.ref;
  super_.inode_file_level = next_->inode_file.level;
  super_.reverse_map = next_->reverse_map.ref;
  super_.free_map = next_->free_map.ref;
  INVARIANT(next_->serial == super_.serial);
  super_.image = {};  // cannot name itself
  super_.node_head.rest = writer_->head();
  super_.live_blocks = next_->live_blocks;
  super_.data_blocks = next_->data_blocks;
  super_.reserved_blocks = next_->reserved_blocks;
  super_.inodes = next_->inodes;
  plan_.count_shared_nodes(*next_);
  super_.snapshots = next_->tables;
  if (super_.snapshots.root) super_.features.ro_compat |= format::kRoCompatSnapshots;
  else super_.features.ro_compat &= ~format::kRoCompatSnapshots;
  count_nodes(writer_->written().size() + 1);
  super_.lifetime = all_.lifetime();
  ++super_.lifetime.checkpoints;
  std::tie(super_.first_error, super_.last_error) = parts_.faults.first_and_last();
  super_.scrub = parts_.superblocks.scrub_mark();
  if (super_.scrub.started) super_.features.compat |= format::kCompatScrubMark;
  super_.costs = parts_.superblocks.costs();
  if (super_.costs != format::WritingCosts()) super_.features.compat |= format::kCompatWritingCosts;
  note_streams();
  if (protects_files_) super_.features.compat |= format::kCompatProtectedFiles;

  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  const std::uint32_t crc = format::encode_super_image(super_, block.span(), maps_->image_address());
  TRY(writer_->write(maps_->image_address(), block.span(), crc, TreeId::super_image, 0));
  super_.image = {maps_->image_address(), crc, 0};
  return writer_->finish();
}

// Everything that the trees name is on the device then: payload and chunks up to lsn_, and the nodes.
Status Checkpoint::wait_for_log() {
  Mutex mutex;
  Condition changed;
  std::optional<Status> durable;
  parts_.log.durability().when_durable(lsn_, [&](Status status) {
    const Lock lock(mutex);
    durable = std::move(status);
    changed.notify_all();
  });
  for (;;) {
    Lock lock(mutex);
    if (durable) break;
    if (parts_.io.background()) {
      changed.wait(lock);
    } else {
      lock.unlock();
      parts_.io.wait();
    }
  }
  TRY(*durable);
  return parts_.log.durability().flush_now();
}

Status Checkpoint::commit() {
  TRY(wait_for_log());
  if (parts_.faults.read_only()) return parts_.faults.refusal();  // an invariant was found broken: nothing becomes final
  return parts_.superblocks.write(super_, [this] { return parts_.log.durability().flush_now(); });
}

void Checkpoint::publish() {
  INVARIANT(parts_.log.durability().durable() >= lsn_);
  tree::TreesPtr old;
  {
    const Gate::Closure closed(parts_.gate);
    next_->segments.count = super_.segments;
    if (reshapes()) parts_.segments.end().resize(super_.segments);
    old = parts_.trees.replace(std::move(next_));
    all_.set_node_head(writer_->head());
    parts_.segments.promise(0);
    if (plan_.any()) plan_.publish();  // with the tables: an operation that shows one must not take these for those of a snapshot that goes
  }
  parts_.segments.merged(frozen_generation_, changed_segments_);
  parts_.space.note_published();
  // Also where space is short: a device that has not been told what is dead copies it, which costs more than the wait.
  const auto freed = parts_.segments.settle(frozen_generation_, parts_.discards.wanted());
  parts_.discards.start(freed, maps_->ledger().take_dead(), frozen_generation_);
  all_.note_settled(super_.serial);
  ++parts_.counters.checkpoints;
}

// The frozen delta is in the trees now. Its inodes let go of it one by one; until then they read the same through it.
void Checkpoint::detach_inodes() {
  for (const auto& delta : parts_.changes.merging().inodes()) {
    changes::InodePtr inode = parts_.inodes.find(delta->ino);
    if (!inode) continue;
    WriteLock lock(inode->mutex);
    changes::InodeDelta** layer = inode->frozen == delta.get() ? &inode->frozen
                         : inode->active == delta.get() ? &inode->active
                                                        : nullptr;
    if (!layer) continue;
    INVARIANT(delta->generation == frozen_generation_);
    if (delta->owned.merged) inode->attributes.blocks = *delta->owned.merged;
    if (delta->freed) inode->missing = true;
    *layer = nullptr;
  }
  std::unique_ptr<changes::Delta> merged;  // of a million records it takes a while: not with the gate closed
  const Gate::Closure closed(parts_.gate);
  merged = parts_.changes.release_merged();
}

}  // namespace varve::checkpoint
