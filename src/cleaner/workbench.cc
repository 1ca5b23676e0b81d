#include "cleaner/workbench.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/logging.h"
#include "format/estimate.h"
#include "format/map_record.h"
#include "format/superblock.h"
#include "log/log.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "snapshots/snapshots.h"
#include "space/admission.h"
#include "space/demand.h"
#include "space/space.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::cleaner {

namespace {

// Blocks that are read at a time. With the dead ones between them they may be twice as many: together they take a sixteenth of the bound.
// A task that puts files together reads in few sweeps what users read together.
std::size_t buffer_of(const store::Store& store, const Task& task) {
  if (task.buffer) return task.buffer;
  constexpr std::size_t kLeast = 64, kLeastOfTidying = 256;
  const std::size_t share = store.options().memory_bytes / 32 / kBlockSize;
  return task.tidies ? std::clamp(share, kLeastOfTidying, 2 * Mover::kUsualBuffer) : std::clamp(share, kLeast, Mover::kUsualBuffer);
}

}  // namespace

Workbench::Workbench(store::Store& store, VictimRule& rule, Placement& placement, BadBlocks& bad, const Task& task,
                     std::function<void(std::string)> tell)
    : store_(store), rule_(rule), placement_(placement), bad_(bad), task_(task), tell_(std::move(tell)),
      mover_(store, buffer_of(store, task), &bad) {
  survey();
  const std::uint64_t clean = store.segments().clean();
  spare_ = clean - std::min(clean, store.space().low_water());
  urgent_ = task.for_room && spare_ <= 1;
  if (!urgent_) return;
  if (auto greedy = VictimRule::make("greedy"); greedy.ok()) greedy_ = std::move(*greedy);
}

std::uint64_t segments_ahead(store::Store& store) {
  return std::max<std::uint64_t>(8, store.segments().end().limit() / 32);
}

unsigned give_up_heads(store::Store& store, std::uint64_t before) {
  const Gate::Closure closed(store.gate());
  return store.log().heads().give_up(before);
}

unsigned Workbench::give_up_heads() {
  const unsigned closed = cleaner::give_up_heads(store_, ~0ULL);
  if (closed) survey();
  return closed;
}

// --- what is known of segments --------------------------------------------------------------------------------------------

void Workbench::survey() {
  facts_.clear();
  const std::uint64_t now = store_.log_clock().now();
  const std::uint64_t clock_unit = store_.super().clock_unit;
  const auto unit = static_cast<double>(clock_unit);
  auto age_in_blocks = [&](std::uint32_t stored) {
    return format::age_of(now / clock_unit, stored) * clock_unit + now % clock_unit;
  };
  // Of blocks from both sides of where stored clocks begin anew the mean says nothing; they die, or are moved, in time.
  auto mean_age = [&](double stored) {
    const double whole = std::floor(stored);
    return std::max(static_cast<double>(age_in_blocks(static_cast<std::uint32_t>(whole))) - (stored - whole) * unit, 0.0);
  };
  const std::uint32_t blocks = store_.segments().geometry().blocks;
  const std::uint64_t settled = store_.trees().own_view().generation;
  auto since = [&](std::uint64_t clock) { return now - std::min(now, clock); };
  store_.segments().for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    // What was handed out since the last checkpoint is in no map yet.
    if (s.state != segments::SegmentState::used || s.touched > settled || s.in_flight || s.tree_live == 0 || s.live() == 0)
      return;
    SegmentFacts f;
    f.id = id;
    f.live = s.live();
    f.blocks = blocks;
    f.group = s.group;
    f.holds_nodes = s.group == format::kGroupNodes;
    f.age = age_in_blocks(s.youngest);
    f.sealed = s.sealed_clock ? since(s.sealed_clock) : f.age;
    f.opened = s.opened_clock ? since(s.opened_clock) : f.sealed;
    if (const double sampled = store_.segments().samples().mean_clock(id); sampled > 0)
      f.sampled_age = std::max(mean_age(sampled), 1.0);
    f.mean_age = mean_age(static_cast<double>(s.clock_sum) / s.tree_live);
    const double living = static_cast<double>(f.live) / std::max(s.tree_live, f.live);
    f.rate_sum = static_cast<double>(s.rate_sum) / 4294967296.0 / unit * living;
    facts_.push_back(f);
  }, segments::SegmentTable::Which::in_use);
  leave_out_pinned();
}

void Workbench::leave_out(std::span<const SegmentId> emptied) {
  std::erase_if(facts_, [&](const SegmentFacts& segment) { return std::ranges::count(emptied, segment.id) > 0; });
}

// --- bad blocks -----------------------------------------------------------------------------------------------------------

void Workbench::leave_out_pinned() {
  outdated_ = false;
  pinned_.clear();
  unmapped_.clear();
  std::erase_if(facts_, [this](const SegmentFacts& segment) {
    if (!is_pinned(segment)) return false;
    (bad_.pin_of(segment.id) == BadBlocks::Pin::unmapped ? unmapped_ : pinned_).push_back(segment);
    return true;
  });
}

// Where the bad blocks are not known one by one (the maps could not be read), any change is a reason to try again.
bool Workbench::is_pinned(const SegmentFacts& segment) {
  const BadBlocks::Pin pin = bad_.pin_of(segment.id);
  if (pin == BadBlocks::Pin::none || (pin == BadBlocks::Pin::sound_left && beside_bad() == Sound::moved)) return false;
  const segments::SegmentInfo info = store_.segments().info(segment.id);
  if (bad_.is_unchanged(segment.id, info)) return true;
  const auto live = mover_.live_blocks(segment.id);
  if (!live.ok() && pin == BadBlocks::Pin::unmapped) bad_.pin(segment.id, info, pin);  // not again before the next change
  return !live.ok() || bad_.still_pins(segment.id, *live, info);
}

void Workbench::pin(SegmentId segment, BadBlocks::Pin kind) {
  bad_.pin(segment, store_.segments().info(segment), kind);
  ++pins_;
  outdated_ = true;
}

bool Workbench::pin_unmapped(std::span<const SegmentFacts> segments) {
  bool any = false;
  for (const SegmentFacts& segment : segments) {
    const auto live = mover_.live_blocks(segment.id);
    if (live.ok()) continue;
    if (!mover_.device_answers()) return false;
    log_error("segment {} cannot be cleaned: {}", segment.id, live.error().message());
    pin(segment.id, BadBlocks::Pin::unmapped);
    any = true;
  }
  return any;
}

bool Workbench::is_known_bad(const LiveBlock& block) const {
  return bad_.knows(store_.segments().geometry().segment_of(block.address), block);
}

// Moving what is sound gains nothing while the bad ones pin the segment, so there must be room to spare for it.
Sound Workbench::beside_bad() const {
  return store_.segments().clean() >= store_.space().low_water() + segments_ahead(store_) / 2 ? Sound::moved : Sound::left;
}

const SegmentFacts* Workbench::find(SegmentId id) const {
  const auto at = std::lower_bound(facts_.begin(), facts_.end(), id, [](const SegmentFacts& f, SegmentId wanted) { return f.id < wanted; });
  return at != facts_.end() && at->id == id ? &*at : nullptr;
}

std::uint64_t Workbench::garbage() const {
  std::uint64_t sum = 0;
  for (const SegmentFacts& segment : facts_) sum += segment.dead();
  return sum;
}

// --- choice ---------------------------------------------------------------------------------------------------------------

bool Workbench::may_move(std::uint64_t blocks, std::uint64_t nodes) {
  const Gate::Pass pass(store_.gate());
  // Most blocks have a neighbour that moves with them; if not, the mover stops when the room is used up.
  space::Demand demand = space::demand_of_moves(blocks, blocks / 4);
  demand.evacuated = nodes;
  return store_.space().may_move(demand);
}

// Half of what the cleaner keeps ready is what it can begin with again.
bool Workbench::may_spend(std::uint64_t blocks) {
  const std::uint64_t opened = blocks / store_.segments().geometry().blocks + 1;
  return may_move(blocks, 0) && store_.segments().clean() >= store_.space().low_water() + segments_ahead(store_) / 2 + opened;
}

// Cleaning begins at the low water and what it keeps ahead; as much again stays for users.
bool Workbench::may_tidy(std::uint64_t blocks) {
  const std::uint64_t opened = blocks / store_.segments().geometry().blocks + 1;
  return may_spend(blocks) && store_.segments().clean() >= store_.space().low_water() + 2 * segments_ahead(store_) + opened;
}

// A round gives nothing back before it is settled, and until then users need room, too. While none of them has to wait it
// takes no more than leaves them twice what they took during the last one. A third at least, or it would gain nothing.
std::uint64_t Workbench::most_segments() const {
  const std::uint64_t users = 2 * task_.users_meanwhile / store_.segments().geometry().blocks + 2;
  return std::max(spare_ - std::min(spare_, users), spare_ / 3);
}

SelectionLimits Workbench::limits() {
  SelectionLimits limits;
  limits.wanted = task_.wanted;
  limits.max_utilisation = up_to_;
  limits.fits = [this](const Victims& v) {
    const std::uint64_t factor = urgent_ || v.live() <= store_.segments().geometry().blocks ? 1 : 2;
    return v.live() <= kMaxLivePerRound && may_move(v.data * factor, v.nodes * factor);
  };
  return limits;
}

void Workbench::clean_only(double above, double up_to) {
  above_ = above > 0 ? above : -1;
  up_to_ = std::min(up_to, kMaxUtilisation);
}

Victims Workbench::choose_from_range(const SelectionLimits& limits) {
  if (outdated_) survey();
  const VictimRule& rule = greedy_ ? *greedy_ : rule_;
  if (above_ < 0) return rule.choose(facts_, limits, *store_.options().random);
  std::vector<SegmentFacts> fuller;
  std::copy_if(facts_.begin(), facts_.end(), std::back_inserter(fuller),
               [this](const SegmentFacts& s) { return s.utilisation() > above_; });
  return rule.choose(fuller, limits, *store_.options().random);
}

Victims Workbench::choose() {
  if (!leaves_users_room()) return choose_from_range(limits());
  SelectionLimits smaller = limits();
  smaller.fits = [this, within = smaller.fits, most = most_segments()](const Victims& v) {
    const std::uint64_t segment = store_.segments().geometry().blocks;
    return (v.live() <= segment || (v.live() + metadata_cost(v.live())) / segment < most) && within(v);
  };
  Victims victims = choose_from_range(smaller);
  if (!is_worth_it(victims)) victims = choose_from_range(limits());
  return victims;
}

std::optional<Victims> Workbench::choose_worthwhile() {
  Victims victims = choose();
  if (!is_worth_it(victims) && task_.waited_for && give_up_heads()) victims = choose();
  if (!is_worth_it(victims)) return std::nullopt;
  return victims;
}

Victims Workbench::choose_all() {
  SelectionLimits all = limits();
  all.fits = SelectionLimits().fits;
  return choose_from_range(all);
}

// Blocks of nodes that moving dirties: a leaf for each block that is moved, or all there are, and the reverse map's.
std::uint64_t Workbench::metadata_cost(std::uint64_t blocks) const {
  const std::uint64_t leaves = store_.trees().own_view().data_blocks / 150 + 4;
  return std::min(blocks, leaves) + blocks / 160 + 4;
}

double Workbench::metadata_share(const Victims& victims) const {
  const std::uint64_t live = std::max<std::uint64_t>(1, victims.live());
  return static_cast<double>(metadata_cost(live)) / static_cast<double>(live);
}

// Half: a rewritten node leaves a hole of its own size behind.
bool Workbench::is_worth_it(const Victims& victims) const {
  return victims.gain > metadata_cost(victims.live()) / 2;
}

// --- moving ---------------------------------------------------------------------------------------------------------------

// What only snapshots have that were asked for is cold, however often users wrote it before: as cold as what has not been written since
// the device was filled once. What automatic ones have dies soon.
std::uint8_t Workbench::group_of(const LiveBlock& block, const SegmentFacts& from) const {
  const std::uint64_t unit = store_.super().clock_unit;
  MovedBlock moved{format::age_of(store_.log_clock().now() / unit, block.clock) * unit,
                   format::decode_interval(block.estimate) * static_cast<double>(unit), from.group};
  if (block.held && !block.shared && store_.snapshots().may_hold_for_good(block.clock)) {
    moved.age = std::max(moved.age, store_.segments().geometry().count * store_.segments().geometry().blocks);
    moved.estimate = 0;
  }
  return place(placement_, moved);
}

void Workbench::empty(const Victims& victims, Round& round, const GroupOf& group) {
  std::uint64_t gain = 0;
  for (SegmentId victim : victims.ids) {
    if (task_.ends(!round.emptied.empty() && gain >= task_.least_gain)) return;
    const SegmentFacts* segment = find(victim);
    // A plugin may say anything.
    if (!segment || std::find(round.emptied.begin(), round.emptied.end(), victim) != round.emptied.end()) continue;
    const Result<bool> emptied = empty_segment(*segment, group);
    if (!emptied.ok()) {
      round.why = emptied.error().message();
      if (emptied.fails_with(Errc::no_space)) return;
      log_warn("cleaning segment {}: {}", victim, round.why);
      round.failure = emptied.error();
      return;
    }
    if (!*emptied) continue;
    placement_.collected(*segment);
    gain += segment->dead();
    round.emptied.push_back(victim);
    store_.space().note_emptied();
  }
}

Result<bool> Workbench::empty_segment(const SegmentFacts& segment, const GroupOf& group) {
  auto live = mover_.live_blocks(segment.id);
  if (!live.ok()) {
    if (!pin_unmapped({&segment, 1})) return live.error();
    return false;
  }
  const std::uint64_t nodes = mover_.nodes_beside();
  for (LiveBlock& block : *live) block.group = group ? group(block, segment) : group_of(block, segment);
  const Sound beside = beside_bad();
  // Before room for them is looked for, so that operations that come meanwhile leave it.
  store_.space().plan_evacuation(nodes);
  const Status moved = mover_.move(*live, beside);
  if (!moved.ok() || mover_.bad()) store_.space().cancel_evacuation(nodes);
  TRY(Status(moved));
  if (mover_.bad()) pin(segment.id, beside == Sound::left ? BadBlocks::Pin::sound_left : BadBlocks::Pin::bad_only);
  return mover_.bad() == 0;
}

}  // namespace varve::cleaner
