#include "cleaner/cleaner.h"

#include <algorithm>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "cleaner/learned_state.h"
#include "cleaner/mover.h"
#include "format/estimate.h"

namespace varve::cleaner {

namespace {
constexpr double kMaxUtilisation = 0.985;
constexpr std::uint64_t kMaxLivePerRound = 16384;  // blocks: 64 MiB

// In ascending order of ids; null: it is not among them.
const SegmentFacts* find(const std::vector<SegmentFacts>& facts, SegmentId id) {
  const auto at = std::lower_bound(facts.begin(), facts.end(), id, [](const SegmentFacts& f, SegmentId wanted) { return f.id < wanted; });
  return at != facts.end() && at->id == id ? &*at : nullptr;
}

}  // namespace

Result<std::unique_ptr<Cleaner>> Cleaner::make(meta::Store& store, std::string_view victims, std::string_view placement) {
  std::unique_ptr<Cleaner> cleaner(new Cleaner(store));
  TRY(cleaner->set_victims(victims));
  TRY(cleaner->set_placement(placement));
  return cleaner;
}

// --- policies -------------------------------------------------------------------------------------------------------------

Status Cleaner::set_victims(std::string_view spelling) {
  std::shared_ptr<VictimRule> rule = TRY(VictimRule::make(spelling));
  std::lock_guard lock(mutex_);
  rule_ = std::move(rule);
  return {};
}

Status Cleaner::set_placement(std::string_view spelling) {
  PlacementScale scale;
  scale.capacity = store_.capacity_blocks();
  scale.segment_blocks = store_.segments().geometry().blocks;
  scale.most_groups = store_.most_open_groups() + 1;
  std::shared_ptr<Placement> placement = TRY(make_placement(spelling, scale));
  restore_learned(*placement, store_.group_centres());
  std::lock_guard lock(mutex_);
  std::swap(placement_, placement);  // the old one lives until nobody inside the gate can use it
  placement_spelling_ = spelling;
  const meta::Gate::Closure closed(store_.gate());
  placement_now_ = placement_.get();
  return {};
}

std::string Cleaner::victims() const {
  std::lock_guard lock(mutex_);
  return rule_->spelling();
}

std::string Cleaner::placement_name() const {
  std::lock_guard lock(mutex_);
  return placement_spelling_;
}

// --- what is known of segments --------------------------------------------------------------------------------------------

std::vector<SegmentFacts> Cleaner::facts() const {
  std::vector<SegmentFacts> result;
  const std::uint64_t now = store_.log_clock();
  const auto unit = static_cast<double>(store_.super().clock_unit);
  const std::uint32_t blocks = store_.segments().geometry().blocks;
  const std::uint64_t settled = store_.view().generation;
  auto since = [&](std::uint64_t clock) { return now - std::min(now, clock); };
  store_.segments().for_each([&](SegmentId id, const log::SegmentInfo& s) {
    // What was handed out since the last checkpoint is in no map yet.
    if (s.state != log::SegmentState::used || s.touched > settled || s.in_flight || s.tree_live == 0 || s.live() == 0)
      return;
    SegmentFacts f;
    f.id = id;
    f.live = s.live();
    f.blocks = blocks;
    f.group = s.group;
    f.holds_nodes = s.group == format::kGroupNodes;
    f.age = since(s.youngest * store_.super().clock_unit);
    f.sealed = s.sealed_clock ? since(s.sealed_clock) : f.age;
    f.opened = s.opened_clock ? since(s.opened_clock) : f.sealed;
    const double mean_clock = static_cast<double>(s.clock_sum) / s.tree_live * unit;
    f.mean_age = std::max(static_cast<double>(now) - mean_clock, 0.0);
    const double living = static_cast<double>(f.live) / std::max(s.tree_live, f.live);
    f.rate_sum = static_cast<double>(s.rate_sum) / 4294967296.0 / unit * living;
    result.push_back(f);
  });
  return result;
}

std::uint64_t Cleaner::ahead() const { return std::max<std::uint64_t>(8, store_.segments().geometry().count / 32); }

// Blocks of nodes that moving dirties: a leaf for each block that is moved, or all there are, and the reverse map's.
std::uint64_t Cleaner::metadata_cost(const Victims& victims) const {
  const std::uint64_t leaves = store_.view().data_blocks / 150 + 4;
  return std::min(victims.live(), leaves) + victims.live() / 160 + 4;
}

// Half: a rewritten node leaves a hole of its own size behind.
bool Cleaner::is_worth_it(const Victims& victims) const { return victims.gain > metadata_cost(victims) / 2; }

unsigned Cleaner::give_up_heads(std::uint64_t before) {
  const meta::Gate::Closure closed(store_.gate());
  return store_.log().give_up_heads(before);
}

// --- a round --------------------------------------------------------------------------------------------------------------

Victims Cleaner::choose(const std::vector<SegmentFacts>& facts, VictimRule& rule, bool urgent) const {
  const std::uint32_t blocks = store_.segments().geometry().blocks;
  SelectionLimits limits;
  limits.wanted = ahead() * blocks;
  limits.max_utilisation = kMaxUtilisation;
  limits.fits = [&](const Victims& v) {
    const std::uint64_t factor = urgent || v.live() <= blocks ? 1 : 2;
    const meta::Gate::Pass pass(store_.gate());
    // Most blocks have a neighbour that moves with them; if not, the mover stops when the room is used up.
    return v.live() <= kMaxLivePerRound &&
           store_.may_move({v.data * factor, v.data * factor / 4, v.nodes * factor, 0});
  };
  return rule.choose(facts, limits, store_.random());
}

std::vector<SegmentId> Cleaner::run_round(bool waited_for) {
  std::shared_ptr<VictimRule> rule;
  std::shared_ptr<Placement> placement;
  {
    std::lock_guard lock(mutex_);
    rule = rule_;
    placement = placement_;
  }
  const std::uint64_t now = store_.log_clock();
  give_up_heads(now - std::min(now, store_.capacity_blocks() / 16));  // what is open cannot be cleaned
  auto known = facts();
  rule->observe(known, now);
  placement->observe(known, now);
  store_.set_group_centres(keep_learned(*placement));
  // With the users' reserve gone they wait: only the quickest gain counts, and all that is left may be used for it.
  const bool urgent = store_.segments().clean() <= store_.low_water() + 1;
  if (urgent)
    if (auto greedy = VictimRule::make("greedy"); greedy.ok()) rule = std::move(*greedy);
  Victims victims = choose(known, *rule, urgent);
  if (!is_worth_it(victims) && waited_for && give_up_heads(~0ULL)) {  // the last to be had is what they have not filled
    known = facts();
    victims = choose(known, *rule, urgent);
  }
  if (!is_worth_it(victims)) {
    set_state("idle: no segment is worth cleaning");
    return {};
  }
  set_state(fmt::format("copying {} live blocks out of {} segments{}{}", victims.live(), victims.ids.size(),
                        victims.why.empty() ? "" : "; ", victims.why));
  auto done = move(victims, known, *placement);
  set_state(fmt::format("waiting for the checkpoint that frees {} segments", done.size()));
  return done;
}

std::vector<SegmentId> Cleaner::move(const Victims& victims, const std::vector<SegmentFacts>& known,
                                     Placement& placement) {
  Mover mover(store_);
  std::vector<SegmentId> done;
  std::uint64_t nodes = 0;
  for (SegmentId victim : victims.ids) {
    const SegmentFacts* segment = find(known, victim);
    if (!segment || std::find(done.begin(), done.end(), victim) != done.end()) continue;  // a plugin may say anything
    if (Status status = move_segment(mover, *segment, placement, nodes); !status.ok()) {
      if (!status.error().is(Errc::no_space)) spdlog::warn("cleaning segment {}: {}", victim, status.error().message());
      break;
    }
    placement.collected(*segment);
    done.push_back(victim);
    ++store_.counters().segments_cleaned;
  }
  return done;
}

Status Cleaner::move_segment(Mover& mover, const SegmentFacts& segment, const Placement& placement,
                             std::uint64_t& nodes) {
  auto live = TRY(mover.live_blocks(segment.id));
  const std::uint64_t there = store_.segments().info(segment.id).live();
  nodes += there - std::min<std::uint64_t>(there, live.size());
  const std::uint64_t unit = store_.super().clock_unit, now = store_.clock_units(store_.log_clock());
  for (LiveBlock& block : live)
    block.group = place(placement, MovedBlock{(now - std::min<std::uint64_t>(now, block.clock)) * unit,
                                              format::decode_interval(block.estimate) * static_cast<double>(unit),
                                              segment.group});
  return mover.move(live, nodes);
}

std::string Cleaner::state() const {
  std::lock_guard lock(state_mutex_);
  return state_;
}

void Cleaner::set_state(std::string state) {
  std::lock_guard lock(state_mutex_);
  state_ = std::move(state);
}

}  // namespace varve::cleaner
