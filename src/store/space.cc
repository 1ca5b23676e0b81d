// Space: what may be filled, and which operations are let in (store.h, headroom.h).
#include <algorithm>

#include "store/headroom.h"
#include "store/store.h"

namespace varve::store {

namespace {

// A recovery begins with a fresh segment for the chain, and a checkpoint without what is left of the metadata head's.
constexpr std::uint64_t kForRecovery = 1;
// A seal may finish the chain's run; the run after that is announced in advance.
constexpr std::uint64_t kForChain = 1;
// Segments that each leaves to the next: users to deletes, deletes to the cleaner, which needs some to
// move a victim, and for the checkpoint after, when all that deletes could take has been taken.
constexpr std::uint64_t kForFreeing = 2, kForCleaner = 3;

std::uint64_t divide_up(std::uint64_t n, std::uint64_t by) { return (n + by - 1) / by; }

// Bytes of items that a single changed block makes: an extent, and what it cuts off another.
constexpr std::uint64_t kItemBytesOfBlock = 40;

// Segments to open for `blocks` more where there is room for some.
std::uint64_t segments_for(std::uint64_t blocks, std::uint64_t room, std::uint64_t segment_blocks) {
  return divide_up(blocks - std::min(blocks, room), segment_blocks);
}

}  // namespace

void Store::choose_reserve() {
  const std::uint64_t n = super_.segments;
  // The cleaner needs room for what it moves before it gets any back, and its checkpoint for the nodes that it dirties.
  users_reserve_ = n / 64 + n / 48 + 6;
}

std::uint64_t Store::capacity_blocks() const { return super_.segments * super_.segment_blocks; }

std::uint64_t Store::reserve_blocks() const {
  const std::uint64_t open_heads = 4 + (most_open_groups() + 1) / 2;  // those of groups are half full, on average
  const std::uint64_t slack = std::max<std::uint64_t>(3, super_.segments / 28);  // what makes cleaning worth its reads
  return (users_reserve_ + open_heads + slack) * super_.segment_blocks;
}

// --- the charge -----------------------------------------------------------------------------------------------------------

// Deltas that are not in the trees of view_.
void Store::for_each_delta(const std::function<void(const Delta&)>& visit) const {
  for (const Delta* delta : {active_.get(), frozen_.get()})
    if (delta && delta->generation() > view_->generation) visit(*delta);
}

std::uint64_t Store::charge(Counted counted) const {
  auto data = static_cast<std::int64_t>(view_->data_blocks + view_->reserved_blocks);
  auto standing = static_cast<std::int64_t>(view_->live_blocks + view_->reserved_blocks);
  for_each_delta([&](const Delta& delta) {
    std::int64_t change = delta.data_change.load(std::memory_order_relaxed);
    if (counted == Counted::at_best) change -= static_cast<std::int64_t>(delta.uncertain.load(std::memory_order_relaxed));
    data += change;
    standing += change + change / 64 + static_cast<std::int64_t>(leaves_of(delta.blob_bytes.load(std::memory_order_relaxed)));
  });
  data = std::max<std::int64_t>(data, 0);
  // A block's worst-case share of leaves and of the reverse map; an inode's of its items, entries and index. Names,
  // targets and attribute sets can be longer than that share: then what really stands there counts.
  const std::int64_t shares = data + data / 64 + static_cast<std::int64_t>(inodes_in_use()) / 12;
  const std::int64_t all = std::max(shares, standing);
  // Nodes are written anew wherever they change, so what is full of them needs more slack than what is full of data.
  return static_cast<std::uint64_t>(all + std::max<std::int64_t>(all - data, 0) / 8) + 64;
}

std::uint64_t Store::inodes_in_use() const {
  auto inodes = static_cast<std::int64_t>(view_->inodes);
  for_each_delta([&](const Delta& delta) { inodes += delta.inode_change.load(std::memory_order_relaxed); });
  return static_cast<std::uint64_t>(std::max<std::int64_t>(inodes, 0));
}

bool Store::has_uncharged(Counted counted, std::uint64_t blocks, std::uint64_t inodes) const {
  const std::uint64_t capacity = capacity_blocks();
  const std::uint64_t reserve = reserve_blocks();
  if (reserve >= capacity || (inodes && next_ino_.load() >= format::kInoLimit)) return false;
  return charge(counted) + blocks + inodes <= capacity - reserve;
}

bool Store::can_charge_at_best(std::uint64_t blocks, std::uint64_t inodes) const {
  return has_uncharged(Counted::at_best, blocks + blocks / 64, inodes);
}

bool Store::can_charge(std::uint64_t blocks, std::uint64_t inodes) const {
  std::uint64_t assumed = 0;
  for_each_delta([&](const Delta& delta) { assumed += delta.assumed.load(std::memory_order_relaxed); });
  return has_uncharged(Counted::at_worst, assumed + blocks + blocks / 64, inodes);
}

std::uint64_t Store::change_bytes() const { return active_->bytes() + (frozen_ ? frozen_->bytes() : 0); }

// --- clean segments ---------------------------------------------------------------------------------------------------------

std::uint64_t Store::merge_need(const Burden& burden) const {
  MergeLoad load;
  load.tree_blocks = view_->live_blocks - std::min(view_->live_blocks, view_->data_blocks);
  if (frozen_ && frozen_->generation() > view_->generation) load.tree_blocks += frozen_nodes_;  // which will stand then
  load.live_blocks = view_->live_blocks;
  load.reverse_leaves = view_->reverse_map.shape.leaves();
  load.reverse_per_leaf = view_->reverse_map.shape.per_leaf();
  load.free_leaves = view_->free_map.shape.leaves();
  load.segment_blocks = super_.segment_blocks;
  load.places = burden.places;
  load.item_bytes = burden.item_bytes;
  load.blocks = burden.blocks;
  load.evacuated = burden.evacuated;
  load.scattered = burden.scattered;
  return merge_blocks(load);
}

Store::Burden Store::active_burden() const {
  return {active_->places(), active_->item_bytes(), active_->records(), 0, active_->scattered()};
}

std::uint64_t Store::waiting_payload() const {
  return (unsealed_payload_bytes() >> kBlockShift) + admitted_payload_.load();
}

std::uint64_t Store::room_for_users() const { return log_.heads()[0].blocks + log_.holes().blocks(); }

std::uint64_t Store::kept_segments(const Burden& more) const {
  Burden all = active_burden();
  all.places += more.places + admitted_places_.load();
  all.item_bytes += more.item_bytes + admitted_item_bytes_.load();
  const std::uint64_t payload = waiting_payload();
  all.blocks += more.blocks + payload;
  all.evacuated += more.evacuated;
  all.scattered += more.scattered + log_.holes().untouched();  // those begun are in the active delta
  // Of a running checkpoint's need, what it has not taken yet is promised. After a crash both are merged as one.
  return divide_up(merge_need(all), super_.segment_blocks) + segments_.promised() +
         segments_for(payload, room_for_users(), super_.segment_blocks) + kForChain + kForRecovery;
}

std::uint64_t Store::kept_when_idle() const {
  return divide_up(merge_need({}), super_.segment_blocks) + kForChain + kForRecovery;
}

std::uint64_t Store::low_water() {
  const Gate::Pass pass(gate_);
  return std::max(users_reserve_, kept_when_idle() + kForFreeing + kForCleaner);
}

bool Store::relief_is_due() {
  const Gate::Pass pass(gate_);
  const std::uint64_t kept = kept_segments({});
  return kept > kept_when_idle() + 2 && segments_.clean() <= kept + kForFreeing + kForCleaner + 2;
}

// Less what the checkpoint takes that frees them.
std::uint64_t Store::lent_segments() const {
  const std::uint64_t emptied = emptied_.load(std::memory_order_relaxed);
  return emptied - std::min(emptied, usual_nodes_.load(std::memory_order_relaxed) / super_.segment_blocks + 1);
}

Store::Room Store::admit(const Claim& claim) {
  if (!reserve_records(claim.record_bytes)) return Room::chunk_full;
  admitted_places_ += claim.places;
  admitted_item_bytes_ += claim.item_bytes;
  const std::uint64_t payload = admitted_payload_.fetch_add(claim.payload) + claim.payload;
  const std::uint64_t kept = kept_segments({.evacuated = planned_evacuation_}) + kForCleaner;
  const std::uint64_t waiting = payload + (unsealed_payload_bytes() >> kBlockShift);
  const std::uint64_t in_holes = log_.holes().blocks();
  // What goes into holes takes nothing from the users' share of clean segments.
  const std::uint64_t reserve = users_reserve_ - std::min(users_reserve_, lent_segments());
  const std::uint64_t for_users =
      in_holes && waiting <= in_holes ? 0 : reserve + 1 + (waiting - in_holes) / super_.segment_blocks;
  if (segments_.clean() >= (claim.frees ? kept : std::max(for_users, kept + kForFreeing))) return Room::granted;
  withdraw(claim);
  reserved_records_ -= claim.record_bytes;
  return Room::no_segment;
}

void Store::withdraw(const Claim& claim) {
  admitted_places_ -= claim.places;
  admitted_item_bytes_ -= claim.item_bytes;
  admitted_payload_ -= claim.payload;
}

bool Store::admits_users_into_holes(const Burden& more) const {
  Burden all = more;
  all.evacuated += planned_evacuation_;
  return segments_.clean() >= kept_segments(all) + kForCleaner + kForFreeing;
}

bool Store::may_move(const Moves& moves) const {
  const Burden more{moves.places, moves.places * kItemBytesOfBlock, moves.blocks, moves.nodes + planned_evacuation_, moves.refilled};
  if (moves.refilled) return segments_.clean() >= kept_segments(more);
  std::uint64_t opened = segments_for(moves.blocks, log_.heads()[moves.group].blocks, super_.segment_blocks);
  if (moves.group == 0) {
    // What users have waiting may all go to group 0: the room at its head is not there twice. Holes in the pool are theirs.
    const std::uint64_t waiting = waiting_payload(), room = room_for_users();
    opened = std::max(opened, segments_for(waiting + moves.blocks, room, super_.segment_blocks)) -
             segments_for(waiting, room, super_.segment_blocks);
  }
  return segments_.clean() >= kept_segments(more) + opened;
}

// Without what is planned to be evacuated, or the cleaner's blocks would leave their groups during a round: it asks may_move()
// before it takes any, and for others there is Checkpoint::choose_evacuees().
std::uint64_t Store::spare_segments() const {
  const std::uint64_t clean = segments_.clean();
  return clean - std::min(clean, std::max(users_reserve_, kept_segments({}) + kForFreeing + kForCleaner));
}

unsigned Store::most_open_groups() const {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(super_.segments / 50, 1, format::kMaxGroups - 1));
}

bool Store::may_open_group() const {
  const auto& heads = log_.heads();
  const auto open = std::count_if(heads.begin() + 1, heads.end(), [](const format::Run& head) { return head.blocks > 0; });
  return open < most_open_groups() && spare_segments() > 0;
}

unsigned Store::head_for(unsigned group) const {
  const auto& heads = log_.heads();
  if (group == 0 || heads[group].blocks || may_open_group()) return group;
  unsigned best = 0;
  auto distance = [&](unsigned other) { return other > group ? other - group : group - other; };
  for (unsigned other = 0; other < heads.size(); ++other)
    if (heads[other].blocks && (!heads[best].blocks || distance(other) < distance(best))) best = other;
  return best;
}

format::Run Store::allocate_in_hole(std::uint32_t blocks) {
  const format::Run run = log_.allocate_in_hole(blocks);
  if (!run.blocks) return run;
  active_->scatter(segments_.geometry().segment_of(run.start));
  counters_.refilled_blocks += run.blocks;
  return run;
}

bool Store::has_room_without_holes() const {
  return spare_segments() > waiting_payload() / super_.segment_blocks + 1;
}

void Store::hand_out_hole(const format::Run& run) {
  segments_.touch(run.start);
  segments_.add_in_flight(run.start, run.blocks);
  active_->scatter(segments_.geometry().segment_of(run.start));
  counters_.refilled_blocks += run.blocks;
}

// A checkpoint that nobody here knows of may have taken it over already.
void Store::cancel_evacuation(std::uint64_t nodes) {
  std::uint64_t planned = planned_evacuation_;
  while (!planned_evacuation_.compare_exchange_weak(planned, planned - std::min(planned, nodes))) {
  }
}

std::uint64_t Store::merge_need_at_freeze(std::uint64_t evacuated) const {
  Burden burden = active_burden();
  burden.evacuated = evacuated;
  return merge_need(burden);
}

bool Store::has_room_to_evacuate(std::uint64_t nodes) const {
  return segments_.clean() >= divide_up(merge_need_at_freeze(nodes), super_.segment_blocks);
}

void Store::promise_nodes(std::uint64_t evacuated) {
  frozen_nodes_ = merge_need_at_freeze(evacuated);
  segments_.promise(divide_up(frozen_nodes_, super_.segment_blocks));
  planned_evacuation_ = 0;
}

}  // namespace varve::store
