#include "space/space.h"

#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "changes/changes.h"
#include "changes/delta.h"
#include "changes/staging.h"
#include "changes/unsealed.h"
#include "device/stream_meter.h"
#include "log/log.h"
#include "segments/counters.h"
#include "snapshots/snapshots.h"
#include "space/admission.h"
#include "space/demand.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::space {

namespace {

std::uint64_t minus(std::atomic<std::uint64_t>& from, std::uint64_t amount) {
  const std::uint64_t before = from.fetch_sub(amount);
  INVARIANT(before >= amount);
  return before - amount;
}

}  // namespace

Space::Space(const SpaceParts& parts) : parts_(parts) {}

// --- what there is ----------------------------------------------------------------------------------------------------------

// Here and below what is admitted is read before what is staged, by loads that acquire: an operation on its way from one to the other is
// counted twice then. In the other order it might not be counted at all.
std::uint64_t Space::waiting_payload() const {
  const std::uint64_t admitted = admitted_payload_.load();
  const changes::Unsealed& unsealed = parts_.staging.unsealed();
  const std::uint64_t logged = unsealed.logged();
  return admitted + logged + (unsealed.payload_bytes() >> kBlockShift);
}

SpaceView Space::view() const {
  const tree::TreeView& trees = parts_.trees.view();
  const changes::Delta& active = std::as_const(parts_.changes).active();
  const changes::Delta* frozen = parts_.changes.frozen();
  INVARIANT(!frozen || frozen->generation() < active.generation());
  SpaceView view;
  view.trees.tree_blocks = trees.node_blocks();
  if (frozen && frozen->generation() > trees.generation) view.trees.tree_blocks += frozen_nodes_;  // which will stand then
  view.trees.live_blocks = trees.live_blocks;
  view.trees.reverse_leaves = trees.reverse_map.shape.leaves();
  view.trees.reverse_per_leaf = trees.reverse_map.shape.per_leaf();
  view.trees.free_leaves = trees.free_map.shape.leaves();
  view.trees.segment_blocks = parts_.segments.geometry().blocks;
  view.clean = parts_.segments.clean();
  view.trees.used_segments = parts_.segments.end().in_use();
  view.promised = parts_.segments.promised();
  view.users_reserve = users_reserve(parts_.segments.end().limit());
  // Less what the checkpoint takes that frees them.
  const std::uint64_t emptied = emptied_.load(std::memory_order_relaxed);
  view.lent = emptied - std::min(emptied, usual_nodes_.load(std::memory_order_relaxed) / parts_.segments.geometry().blocks + 1);
  view.waiting.places = admitted_places_.load();
  view.waiting.item_bytes = admitted_item_bytes_.load();
  view.waiting.payload = waiting_payload();
  view.waiting.places += active.places();
  view.waiting.item_bytes += active.item_bytes();
  view.waiting.scattered = active.scattered() + (parts_.log.leaves_gaps() ? 1 : 0);  // where the next chunk will stand
  view.has_snapshots = trees.tables.root || parts_.snapshots.any();
  if (view.has_snapshots) {
    view.waiting.freed = admitted_freed_.load();
    view.waiting.freed += active.freed.load(std::memory_order_relaxed);
    view.moved = active.moved.load(std::memory_order_relaxed) + parts_.snapshots.moves();
  }
  view.changed_blocks = active.records();
  view.usual_need = frozen_nodes_;
  view.planned_evacuation = planned_evacuation_.load();
  view.head_blocks = room_at_head();
  view.hole_blocks = parts_.log.heads().holes().blocks();
  view.untouched_holes = parts_.log.heads().holes().untouched();
  return view;
}

std::uint64_t Space::low_water() const {
  const Gate::Pass pass(parts_.gate);
  return space::low_water(view());
}

std::uint64_t Space::low_water_beside_holes() const {
  const Gate::Pass pass(parts_.gate);
  return space::low_water_beside_holes(view());
}

bool Space::relief_is_due() const {
  if (parts_.changes.count_bytes() >= parts_.memory_bytes / 6) return true;
  const Gate::Pass pass(parts_.gate);
  return space::relief_is_due(view());
}

// --- operations -----------------------------------------------------------------------------------------------------------------

Space::Room Space::admit(const Demand& demand) {
  changes::Unsealed& unsealed = parts_.staging.unsealed();
  if (!unsealed.reserve_records(demand.record_bytes)) return Room::chunk_full;
  admitted_places_ += demand.places;
  admitted_item_bytes_ += demand.items();
  admitted_payload_ += demand.payload;
  admitted_freed_ += demand.freed;
  if (admits(view(), demand.frees)) return Room::granted;
  withdraw(demand);
  unsealed.give_back_records(demand.record_bytes);
  return Room::no_segment;
}

void Space::withdraw(const Demand& demand) {
  minus(admitted_places_, demand.places);
  minus(admitted_item_bytes_, demand.items());
  minus(admitted_payload_, demand.payload);
  minus(admitted_freed_, demand.freed);
}

std::uint64_t Space::memory_of_changes() const {
  const std::uint64_t share = parts_.memory_bytes / 8 * 3;
  return share - std::min(share / 2, memory_taken_.load(std::memory_order_relaxed));
}

bool Space::changes_fill_memory() const { return parts_.changes.bytes() >= memory_of_changes(); }

std::uint64_t Space::memory_beside_changes() const {
  const Gate::Pass pass(parts_.gate);
  const std::uint64_t all = memory_of_changes();
  return all - std::min<std::uint64_t>(all, parts_.changes.bytes());
}

// --- the cleaner -----------------------------------------------------------------------------------------------------------------

bool Space::may_move(const Demand& demand, unsigned group) const {
  return admits_moves(view(), demand, group == 0, parts_.log.heads().rests()[group].blocks);
}

void Space::note_emptied() {
  emptied_.fetch_add(1, std::memory_order_relaxed);
  ++parts_.counters.segments_cleaned;
}

// A checkpoint that nobody here knows of may have taken it over already.
void Space::cancel_evacuation(std::uint64_t nodes) {
  std::uint64_t planned = planned_evacuation_;
  while (!planned_evacuation_.compare_exchange_weak(planned, planned - std::min(planned, nodes))) {
  }
}

// --- where payload goes ------------------------------------------------------------------------------------------------------------

// What the user says counts, then what is measured, then what was known before.
format::DeviceProfile Space::device_profile() const {
  format::DeviceProfile profile = parts_.device;
  const unsigned measured = parts_.meter.limit();
  if (!measured || profile.streams_source == format::Source::given) return profile;
  profile.streams = static_cast<std::uint16_t>(measured);
  profile.streams_source = format::Source::measured;
  return profile;
}

unsigned Space::most_open_groups() const {
  return space::most_open_groups(parts_.segments.end().limit(), device_profile().streams);
}

// Groups pay when their segments are cleaned, and cost from the first write on where places are dear. So as long as nothing is known of
// a disk, and much is clean, all is written at one place. Then the log and so many groups take turns as have been seen to be cheap, and
// one more.
unsigned Space::most_open_now() const {
  const unsigned most = most_open_groups();
  if (!parts_.is_disk || device_profile().streams) return most;
  return 2 * parts_.segments.clean() > parts_.segments.end().limit() ? 0 : std::min(most, parts_.meter.proven());
}

// With heads that are too many by now the first ones are used on, and the cleaner gives up the others.
unsigned Space::head_for(unsigned group) const {
  const auto& heads = parts_.log.heads().rests();
  MEMORY_INVARIANT(group < heads.size());
  const unsigned most = most_open_now();
  unsigned best = 0, open = 0;
  const auto distance = [&](unsigned other) { return other > group ? other - group : group - other; };
  for (unsigned other = 1; other < heads.size() && open < most; ++other) {
    if (!heads[other].blocks) continue;
    ++open;
    if ((best == 0 && !heads[0].blocks) || distance(other) < distance(best)) best = other;
  }
  if (group == 0 || best == group) return group;
  const bool may_open = !heads[group].blocks && open < most && spare_segments() > 0;
  return may_open ? group : best;
}

void Space::scatter(const format::Run& run) {
  note_thin(run.start);
  parts_.counters.refilled_blocks += run.blocks;
}

void Space::note_thin(BlockAddr address) {
  parts_.changes.active().scatter(parts_.segments.geometry().segment_of(address));
}

format::Run Space::allocate_in_hole(std::uint32_t blocks) {
  const format::Run run = parts_.log.heads().allocate_in_hole(blocks);
  if (run.blocks) scatter(run);
  return run;
}

void Space::hand_out_hole(const format::Run& run) {
  parts_.segments.touch(run.start);
  parts_.segments.add_in_flight(run.start, run.blocks);
  scatter(run);
}

std::uint64_t Space::spare_segments() const { return space::spare_segments(view()); }

bool Space::has_room_without_holes() const {
  return spare_segments() > waiting_payload() / parts_.segments.geometry().blocks + 1;
}

bool Space::has_room_in_chain() const {
  SpaceView there = view();
  there.head_blocks = parts_.log.position().rest.blocks;
  return there.clean >= kept_segments(there, {});
}

// For users' payload. The header of a seal stands behind it, and has the segment that the chain has announced. Where there are holes as
// well the seal may go either way.
std::uint64_t Space::room_at_head() const {
  const std::uint64_t head = parts_.log.heads().rests()[0].blocks;
  if (!has_one_stream()) return head;
  const std::uint64_t rest = parts_.log.position().rest.blocks;
  return parts_.log.heads().holes().blocks() ? std::min(head, rest) : rest;
}

bool Space::admits_users_into_holes(const Demand& more) const { return admits_into_holes(view(), more); }

// --- another size --------------------------------------------------------------------------------------------------------------

// Chain, nodes and each group may have to begin a segment below, and another one soon.
bool Space::admits_retreat(std::uint64_t limit, Margin margin) const {
  SpaceView there = view();
  const auto& heads = parts_.log.heads().rests();
  const auto begun = static_cast<std::uint64_t>(
      std::count_if(heads.begin(), heads.end(), [](const format::Run& head) { return head.blocks > 0; }));
  there.clean = parts_.segments.end().clean_below(limit);
  there.users_reserve = margin == Margin::of_users ? users_reserve(limit) : 0;
  there.head_blocks = there.hole_blocks = there.untouched_holes = 0;
  return has_spare_segments(there, begun + (margin == Margin::of_users ? 2 : 0));
}

// --- a checkpoint -------------------------------------------------------------------------------------------------------------------

bool Space::has_room_to_evacuate(std::uint64_t nodes) const { return admits_evacuation(view(), nodes); }

snapshots::DeletionStep Space::deletion_step(bool left) const {
  if (!left) return {};
  for (std::uint64_t pieces = 128; pieces > 1; pieces /= 4)
    if (const snapshots::DeletionStep step{pieces, 16 * pieces}; admits_deletion(view(), step)) return step;
  return {1, 16};
}

void Space::promise_nodes(std::uint64_t evacuated, const snapshots::DeletionStep& deletion) {
  INVARIANT(admitted_payload_ == 0 && admitted_places_ == 0 && admitted_item_bytes_ == 0);  // withdrawn inside the gate
  frozen_nodes_ = merge_need_at_freeze(view(), evacuated, deletion);
  parts_.segments.promise(divide_up(frozen_nodes_, parts_.segments.geometry().blocks));
  planned_evacuation_ = 0;
}

void Space::note_written(std::uint64_t nodes, bool expected) {
  parts_.counters.node_blocks += nodes;
  usual_nodes_ = nodes;
  if (expected && nodes > frozen_nodes_) parts_.counters.unforeseen_nodes += nodes - frozen_nodes_;
}

}  // namespace varve::space
