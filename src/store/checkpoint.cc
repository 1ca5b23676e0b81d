#include "store/checkpoint.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "base/invariant.h"
#include "log/chain.h"
#include "log/io_context.h"
#include "log/log.h"
#include "store/changes.h"
#include "store/counters.h"
#include "store/discards.h"
#include "store/faults.h"
#include "store/log_clock.h"
#include "store/sealer.h"
#include "store/space.h"
#include "store/superblock_keeper.h"
#include "store/superblocks.h"
#include "store/hole_feeder.h"

namespace varve::store {

using format::TreeId;

Status Checkpoint::complete() {
  TRY(merge());
  TRY(close_maps());
  TRY(fill_free_map());
  TRY(write_reverse_leaves());
  next_->reverse_map = TRY(reverse_->write(*writer_));
  next_->free_map = TRY(free_->write(*writer_));
  TRY(write_image());
  TRY(commit());
  publish();
  detach_inodes();
  return {};
}

Status Checkpoint::freeze() {
  const Gate::Closure closed(store_.gate());
  const log::SegmentTable& segments = store_.segments();
  const std::uint64_t limit = segments.end().limit(), count = segments.geometry().count;
  before_.limit = limit < count && segments.end().in_use_from(limit) == 0 ? limit : count;
  lsn_ = TRY(store_.sealer().run(false, nullptr));
  store_.hole_feeder().freeze();
  take_snapshot_changes();
  const std::uint64_t evacuated = choose_evacuees();
  if (plan_ && plan_->moves.empty() && evacuate_.empty())
    plan_->deletion = store_.space().deletion_step(plan_->list.first_deleting() || store_.snapshots().deletion_is_left());
  store_.space().promise_nodes(evacuated, plan_ ? plan_->deletion : DeletionStep());
  frozen_generation_ = store_.segments().freeze();
  INVARIANT(std::as_const(store_.changes()).active().generation() == frozen_generation_);
  store_.changes().freeze(store_.segments().generation());

  super_ = store_.superblocks().written();
  INVARIANT(super_.serial == store_.checkpoints().settled());
  before_.device_blocks = super_.device_blocks;
  if (request_.device_blocks) {
    super_.device_blocks = request_.device_blocks;
    super_.segments = format::segments_in(super_.device_blocks, super_.first_segment, super_.segment_blocks);
    INVARIANT(super_.segments >= before_.limit);
  }
  super_.serial = Serial{super_.serial.v + 1};
  super_.epoch = store_.log().epoch();
  const log::ChainPosition position = store_.log().position();
  INVARIANT(position.lsn == lsn_);
  super_.lsn = position.lsn;
  super_.chain_crc = position.crc;
  super_.chain = position.rest;
  super_.next_run = position.next_run;
  super_.clock = store_.log_clock().now();
  super_.next_ino = store_.staging().next_ino();
  for (unsigned g = 0; g < format::kMaxGroups; ++g) super_.heads[g].rest = store_.log().heads().rests()[g];
  super_.group_centres = store_.superblocks().group_centres();
  super_.clean = request_.clean;
  format::allow_chunks(super_, request_.clean ? format::Chunks::none : store_.log().chunks_allowed());
  store_.checkpoints().note_frozen(store_.log().blocks_taken());
  return {};
}

// What there is no room for stays where it is: better than a checkpoint that ends halfway (H39). Segments of files go first:
// what counts as live in those is hardly ever a node, but what has been overwritten and nobody has looked up.
std::uint64_t Checkpoint::choose_evacuees() {
  const log::SegmentTable& segments = store_.segments();
  std::stable_partition(evacuate_.begin(), evacuate_.end(), [&](SegmentId id) { return segments.info(id).group == format::kGroupNodes; });
  // Another shape of the maps, or an end of them that is cleared, takes a way from the root to the last leaf in both.
  constexpr std::uint64_t kOfEnds = 32;
  std::uint64_t nodes = request_.device_blocks || before_.limit < segments.geometry().count ? kOfEnds : 0;
  for (SegmentId segment : evacuate_) nodes += segments.info(segment).live();
  INVARIANT(store_.staging().unsealed().payload_bytes() == 0 && store_.staging().unsealed().deltas().empty());
  while (!evacuate_.empty() && !store_.space().has_room_to_evacuate(nodes)) {
    const std::uint64_t live = segments.info(evacuate_.back()).live();
    INVARIANT(nodes >= live);
    nodes -= std::min(nodes, live);
    evacuate_.pop_back();
  }
  if (!request_.evacuate.empty()) store_.checkpoints().note_evacuation(evacuate_.size() < request_.evacuate.size());
  return nodes;
}

// Nothing lives at or beyond the limit: what the reverse map knew of it goes, rather than from place to place.
Status Checkpoint::reshape_maps() {
  const auto geometry = store_.segments().geometry();
  if (reshapes()) {
    TRY(reverse_->reshape(format::reverse_map_shape(super_.device_blocks), *writer_));
    return free_->reshape(format::free_map_shape(super_.segments, super_.segment_blocks), *writer_);
  }
  if (before_.limit == geometry.count) return {};
  before_.cleared_from = geometry.start_of(SegmentId{before_.limit});
  return reverse_->clear_from(before_.cleared_from.v, *writer_);
}

Status Checkpoint::merge() {
  store_.changes().merging().sort();
  const TreeView& old = store_.trees().own_view();
  source_ = std::make_unique<BlockingSource>(store_.trees().cache(), store_.device());
  writer_ = std::make_unique<NodeWriter>(store_.device(), store_.segments(), store_.trees().cache(),
                                         super_.identity, super_.serial, store_.checkpoints().node_head(), store_.log_clock().now());
  evacuees_ = std::make_unique<Evacuees>(store_, *source_, evacuate_);
  if (!evacuate_.empty()) {
    TRY(evacuees_->find());
    evacuees_->report_stuck();
    merge_options_.evacuate = [this](BlockAddr address) { return evacuees_->has(address); };
    merge_options_.evacuate_keys = evacuees_->of_inode_file();
  }
  reverse_ = std::make_unique<MapEditor>(*source_, old.reverse_map);
  reverse_->defer_leaves();  // blocks in holes may stand in as many leaves
  reverse_->replace_bad_nodes([this](BlockAddr address, const Error& why) { return lose_owners(address, why); });
  free_ = std::make_unique<MapEditor>(*source_, old.free_map);
  TRY(reshape_maps());
  ledger_ = std::make_unique<SegmentLedger>(store_.segments(), *free_, store_.discards().dead_runs());
  begin_snapshots();
  editor_ = std::make_unique<DeltaEditor>(store_.changes().merging(), old, *source_, super_.hash_key,
                                          [this](const format::Extent& extent, BlockAddr moved_to) {
                                            return plan_ ? plan_->merge->gone(extent, moved_to) : ledger_->release(extent);
                                          }, plan_ != nullptr);
  next_ = std::make_shared<TreeView>(old);
  next_->serial = super_.serial;
  next_->generation = frozen_generation_;
  NodeSink& sink = plan_ ? plan_->merge->sink() : *writer_;
  next_->inode_file = TRY(merge_items(*source_, old.inode_file, *editor_, sink, merge_options_));
  next_->data_blocks += static_cast<std::uint64_t>(editor_->totals().data_blocks);
  next_->reserved_blocks += static_cast<std::uint64_t>(editor_->totals().reserved_blocks);
  next_->inodes += static_cast<std::uint64_t>(editor_->totals().inodes);
  if (!plan_) return {};
  merge_options_.evacuate_keys = evacuees_->of_snapshots();
  return plan_->merge->finish(plan_->creation, plan_->deletion, merge_options_, *next_);
}

void Checkpoint::count_nodes(std::uint64_t nodes) {
  const bool first = store_.trees().own_view().generation == 0;  // what a recovery has replayed has not been reckoned with
  store_.space().note_written(nodes, !first);
}

// What was said stays, and what a mount option says is for that mount.
void Checkpoint::note_streams() {
  const format::DeviceProfile known = store_.space().device_profile();
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
  if (plan_ && plan_->creation) {  // those of the maps with them
    next_->tables.shared_nodes = next_->node_blocks();
    if (!plan_->creation->automatic) next_->automatic.shared_for_good = next_->tables.shared_nodes;
  }
  if (plan_ && plan_->keeps) next_->automatic.shared_for_good = next_->tables.shared_nodes;  // which of them it has is not known
  super_.snapshots = next_->tables;
  if (super_.snapshots.root) super_.features.ro_compat |= format::kRoCompatSnapshots;
  else super_.features.ro_compat &= ~format::kRoCompatSnapshots;
  count_nodes(writer_->written().size() + 1);
  super_.lifetime = store_.lifetime();
  ++super_.lifetime.checkpoints;
  std::tie(super_.first_error, super_.last_error) = store_.faults().first_and_last();
  super_.scrub = store_.superblocks().scrub_mark();
  if (super_.scrub.started) super_.features.compat |= format::kCompatScrubMark;
  super_.costs = store_.superblocks().costs();
  if (super_.costs != format::WritingCosts()) super_.features.compat |= format::kCompatWritingCosts;
  note_streams();
  if (editor_->totals().protected_files) super_.features.compat |= format::kCompatProtectedFiles;

  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  const std::uint32_t crc = format::encode_super_image(super_, block.span(), image_address_);
  TRY(writer_->write(image_address_, block.span(), crc, TreeId::super_image, 0));
  super_.image = {image_address_, crc, 0};
  return writer_->finish();
}

Status Checkpoint::commit() {
  // Everything that the trees name is on the device: payload and chunks up to lsn_, and the nodes.
  Mutex mutex;
  Condition changed;
  std::optional<Status> durable;
  store_.log().durability().when_durable(lsn_, [&](Status status) {
    const Lock lock(mutex);
    durable = std::move(status);
    changed.notify_all();
  });
  for (;;) {
    Lock lock(mutex);
    if (durable) break;
    if (store_.io().background()) {
      changed.wait(lock);
    } else {
      lock.unlock();
      store_.io().wait();
    }
  }
  TRY(*durable);
  TRY(store_.log().durability().flush_now());
  if (store_.faults().read_only()) return store_.faults().refusal();  // an invariant was found broken: nothing becomes final
  return store_.write_superblocks(super_);
}

void Checkpoint::publish() {
  INVARIANT(store_.log().durability().durable() >= lsn_);
  TreesPtr old;
  {
    const Gate::Closure closed(store_.gate());
    next_->segments.count = super_.segments;
    if (reshapes()) store_.segments().end().resize(super_.segments);
    old = store_.trees().replace(std::move(next_));
    store_.checkpoints().set_node_head(writer_->head());
    store_.segments().promise(0);
    publish_snapshots();  // with the tables: an operation that shows one must not take these for those of a snapshot that goes
  }
  store_.segments().merged(frozen_generation_, changed_segments_);
  store_.space().note_published();
  // Also where space is short: a device that has not been told what is dead copies it, which costs more than the wait.
  const auto freed = store_.segments().settle(frozen_generation_, store_.discards().wanted());
  store_.discards().start(freed, ledger_->take_dead(), frozen_generation_);
  store_.checkpoints().note_settled(super_.serial);
  ++store_.counters().checkpoints;
}

// The frozen delta is in the trees now. Its inodes let go of it one by one; until then they read the same through it.
void Checkpoint::detach_inodes() {
  for (const auto& delta : store_.changes().merging().inodes()) {
    InodePtr inode = store_.inodes().find(delta->ino);
    if (!inode) continue;
    WriteLock lock(inode->mutex);
    InodeDelta** layer = inode->frozen == delta.get() ? &inode->frozen
                         : inode->active == delta.get() ? &inode->active
                                                        : nullptr;
    if (!layer) continue;
    INVARIANT(delta->generation == frozen_generation_);
    if (delta->owned.merged) inode->attributes.blocks = *delta->owned.merged;
    if (delta->freed) inode->missing = true;
    *layer = nullptr;
  }
  std::unique_ptr<Delta> merged;  // of a million records it takes a while: not with the gate closed
  const Gate::Closure closed(store_.gate());
  merged = store_.changes().release_merged();
}

}  // namespace varve::store
