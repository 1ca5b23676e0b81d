#include "cleaner/cleaner.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/superblock_keeper.h"
#include "cleaner/learned_state.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/workbench.h"
#include "device/device_timer.h"
#include "device/faults.h"
#include "device/io_context.h"
#include "device/write_cost.h"
#include "segments/counters.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "space/admission.h"
#include "space/charge.h"
#include "space/hole_feeder.h"
#include "space/space.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::cleaner {

namespace {
// A round for want of room goes on for so long, and so many times as long as settling it takes; then for one segment more.
constexpr std::uint64_t kShortRoundNs = 200'000'000;
// Where the log, nodes and a head are more places than the device keeps cheap each checkpoint costs copies of units beside.
std::uint64_t times_settling(unsigned streams) {
  constexpr unsigned kEnoughStreams = 4;
  return streams == 0 || streams >= kEnoughStreams ? 2 : 3;
}
}  // namespace

Cleaner::Cleaner(store::Store& store) : store_(store), costs_(store.super().costs) {
  store.io().write_cost().restore(store.super().costs.in_row, store.super().costs.scattered);
}

Result<std::unique_ptr<Cleaner>> Cleaner::make(store::Store& store, const RuleNames& names) {
  std::unique_ptr<Cleaner> cleaner(new Cleaner(store));
  TRY(cleaner->set_victims(names.victims));
  TRY(cleaner->set_placement(names.placement));
  TRY(cleaner->set_strategy(names.strategy));
  return cleaner;
}

Cleaner::~Cleaner() {
  if (rules_.strategy) rules_.strategy->end(store_);
}

// --- rules ----------------------------------------------------------------------------------------------------------------

Status Cleaner::set_strategy(std::string_view spelling) {
  std::shared_ptr<Strategy> strategy = TRY(make_strategy(spelling));
  const Lock lock(mutex_);
  std::swap(rules_.strategy, strategy);
  strategy_spelling_ = spelling;
  if (strategy) strategy->end(store_);
  rules_.strategy->begin(store_);
  return {};
}

Status Cleaner::set_victims(std::string_view spelling) {
  std::shared_ptr<VictimRule> rule = TRY(VictimRule::make(spelling));
  const Lock lock(mutex_);
  rules_.victims = std::move(rule);
  store_.segments().samples().keep(rules_.victims->samples());
  return {};
}

Result<std::shared_ptr<Placement>> Cleaner::new_placement(std::string_view spelling) const {
  PlacementScale scale;
  scale.capacity = store_.charge().capacity_blocks();
  scale.segment_blocks = store_.segments().geometry().blocks;
  scale.most_groups = store_.space().most_open_groups() + 1;
  std::shared_ptr<Placement> placement = TRY(make_placement(spelling, scale));
  restore_learned(*placement, store_.superblocks().group_centres());
  return placement;
}

Status Cleaner::set_placement(std::string_view spelling) {
  auto placement = TRY(new_placement(spelling));
  const Lock lock(mutex_);
  std::swap(rules_.placement, placement);  // the old one lives until nobody inside the gate can use it
  placement_spelling_ = spelling;
  const Gate::Closure closed(store_.gate());
  placement_now_ = rules_.placement.get();
  return {};
}

Rules Cleaner::mount_rules() const {
  const Lock lock(mutex_);
  return rules_;
}

Result<Rules> Cleaner::rules(const RuleNames& names) const {
  Rules rules = mount_rules();
  const std::string in_use = spellings().strategy;
  rules.strategy = TRY(make_strategy(names.strategy.empty() ? in_use : names.strategy));
  if (!names.victims.empty()) rules.victims = TRY(VictimRule::make(names.victims));
  if (!names.placement.empty()) rules.placement = TRY(new_placement(names.placement));
  return rules;
}

Rules Cleaner::leaving_rules() const {
  Rules rules = mount_rules();
  rules.strategy = make_leaving();
  return rules;
}

Status Cleaner::rescale() {
  store_.superblocks().set_group_centres(keep_learned(*mount_rules().placement));
  {
    const Lock lock(mutex_);  // when users write into holes goes by the number of segments
    rules_.strategy->end(store_);
    rules_.strategy->begin(store_);
  }
  return set_placement(spellings().placement);
}

Cleaner::Spellings Cleaner::spellings() const {
  const Lock lock(mutex_);
  return {strategy_spelling_, rules_.victims->spelling(), placement_spelling_};
}

bool Cleaner::works_when_idle() const { return mount_rules().strategy->works_when_idle(); }
std::string Cleaner::explanation() const { return mount_rules().strategy->explanation(); }

// --- a round --------------------------------------------------------------------------------------------------------------

std::uint64_t Cleaner::ahead() const { return segments_ahead(store_); }

// With less it would soon wait again. Where a round has let nobody in, the next ones gain more: each has a checkpoint beside.
std::uint64_t Cleaner::gain_for_waiting() {
  const std::uint64_t segment = store_.segments().geometry().blocks, now = store_.log_clock().now();
  const bool in_vain = waited_at_ && now - waited_at_ < segment / 4;
  waited_at_ = now;
  least_gain_ = std::clamp(in_vain ? 2 * least_gain_ : least_gain_ - least_gain_ / 8, segment / 4, segment);
  return least_gain_;
}

Round Cleaner::run_round(bool waited_for) {
  Task task;
  task.wanted = ahead() * store_.segments().geometry().blocks;
  task.waited_for = waited_for;
  task.users_meanwhile = meanwhile_;
  if (waited_for) task.least_gain = gain_for_waiting();
  task.late = [this, end = std::uint64_t{0}]() mutable {
    const std::uint64_t now = store_.options().clock->monotonic_ns();
    if (!end) end = now + std::max(kShortRoundNs, times_settling(store_.space().device_profile().streams) * settling_ns_);
    return now >= end;
  };
  (void)task.late();  // the time begins
  task.costs = &costs_;
  return run_round(task, mount_rules());
}

Round Cleaner::run_idle_round(std::function<bool()> stop) {
  Task task;
  task.wanted = store_.charge().capacity_blocks();
  task.for_room = false;
  task.stop = std::move(stop);
  return run_round(task, mount_rules());
}

Round Cleaner::run_round(const Task& task, const Rules& rules) {
  const std::uint64_t now = store_.log_clock().now();
  give_up_heads(store_, now - std::min(now, store_.charge().capacity_blocks() / 16));  // what is open cannot be cleaned
  if (task.waited_for) store_.hole_feeder().give_up_stale();
  pin_leftovers();
  if (task.costs) costs_.begin(reading());
  else costs_.interrupt();
  const device::DeviceTimer timer(store_.io());
  Workbench bench(store_, *rules.victims, *rules.placement, bad_, task, [this](std::string what) { set_state(std::move(what)); });
  rules.victims->observe(bench.facts(), now);
  rules.placement->observe(bench.facts(), now);
  if (rules.placement.get() == placement_now_.load()) store_.superblocks().set_group_centres(keep_learned(*rules.placement));
  PastRound past = before(task, rules);
  const std::uint64_t read = store_.counters().cleaned_blocks_read, written = store_.counters().cleaned_blocks;
  Round round = run_fruitfully(*rules.strategy, bench);
  round.read = store_.counters().cleaned_blocks_read - read;
  round.written = store_.counters().cleaned_blocks - written;
  round.moved |= round.written > 0;
  if (task.costs) note_cost(round, bench.mover().plugged(), timer.span());
  count_pinned();
  if (const std::uint64_t pinned = pinned_segments_)
    round.why += fmt::format("{}segments left alone because of bad blocks: {}", round.why.empty() ? "" : "; ", pinned);
  if (round.moved || !round.emptied.empty()) {
    past.emptied = round.emptied.size();
    past.read = round.read;
    past.written = round.written;
    history_.add(std::move(past));
  }
  if (round.emptied.empty()) store_.space().cancel_evacuation(~0ULL);  // no checkpoint need follow
  emptied_ = round.emptied;
  emptied_since_ = store_.trees().own_view().generation;
  if (!round.emptied.empty()) set_state(fmt::format("waiting for the checkpoint that frees {}", counted(round.emptied.size(), "segment")));
  else if (!round.moved) set_state("idle: " + round.why);
  return round;
}

// --- what it costs ------------------------------------------------------------------------------------------------------------

CostLedger::Reading Cleaner::reading() const {
  return {store_.io().time_of_others().writing_ns, store_.io().cpu_wait_of_process_ns(), store_.counters().user_blocks,
          store_.counters().refilled_blocks};
}

// A round that does both, for want of room for one, says little of either.
void Cleaner::note_cost(const Round& round, std::uint64_t plugged, const device::DeviceSpan& took) {
  if (plugged && plugged < round.written) return costs_.interrupt();
  costs_.ended(plugged ? CostLedger::Kind::filling : CostLedger::Kind::copying, round.written, took);
}

Status Cleaner::settle(const checkpoint::CheckpointRequest& request) {
  device::Faults& faults = store_.faults();
  const std::uint64_t began = store_.options().clock->monotonic_ns(), host_fulls = faults.host_fulls();
  const bool was_full = faults.host_full();
  const device::DeviceTimer timer(store_.io());
  Status status = store_.checkpoints().make(request);
  if (!was_full && faults.host_fulls() == host_fulls) note_settling(store_.options().clock->monotonic_ns() - began, timer.span());
  return status;
}

void Cleaner::note_settling(std::uint64_t ns, const device::DeviceSpan& device) {
  settling_ns_ = settling_ns_ ? (3 * settling_ns_ + ns) / 4 : ns;  // a mean: it depends much on what had to be evacuated
  costs_.settled(device, reading());
  if (costs_.take_forgotten()) store_.io().write_cost().forget_scattered();
  format::WritingCosts costs = costs_.remembered();
  costs.in_row = store_.io().write_cost().in_row();
  costs.scattered = store_.io().write_cost().scattered();
  store_.superblocks().set_costs(costs);
}

void Cleaner::reconsider() {
  if (costs_.look(reading())) mount_rules().strategy->reconsider(store_, costs_);
}

// What the last round emptied and the checkpoint after it did not free holds nodes that cannot be read, unless there was no room for
// them. Or it holds what a file has lost meanwhile and a snapshot still has: that can be moved yet.
void Cleaner::pin_leftovers() {
  if (store_.trees().own_view().generation == emptied_since_) return;
  if (store_.checkpoints().evacuation_was_cut()) emptied_.clear();
  Mover mover(store_);
  for (SegmentId id : emptied_) {
    const segments::SegmentInfo info = store_.segments().info(id);
    const bool is_left = info.state == segments::SegmentState::used && info.tree_live && info.touched <= emptied_since_;
    if (!is_left) continue;
    const auto live = mover.live_blocks(id);
    if (!live.ok() || live->empty()) bad_.pin(id, info, BadBlocks::Pin::bad_only);
  }
  emptied_.clear();
}

void Cleaner::count_pinned() {
  const BadBlocks::Counts counts = bad_.count(store_.segments(), mount_rules().strategy->fills_holes());
  pinned_segments_ = counts.segments;
  pinned_garbage_ = counts.garbage;
  lost_room_ = counts.lost_room;
}

// Victims that turned out to hold bad blocks are none any more: others take their place, or operations that wait would be told that
// nothing can be gained.
Round Cleaner::run_fruitfully(Strategy& strategy, Workbench& bench) {
  constexpr int kMostTurns = 8;
  for (int turn = 1;; ++turn) {
    const std::size_t pins = bench.pins();
    Round round = strategy.run(bench);
    const bool again = bench.pins() > pins && round.emptied.empty() && !round.failure;
    if (!again || turn == kMostTurns || bench.task().stopped()) return round;
  }
}

PastRound Cleaner::before(const Task& task, const Rules& rules) const {
  PastRound past;
  if (history_.kept() == 0) return past;
  past.clock = store_.log_clock().now();
  past.strategy = rules.strategy->name();
  past.victims = rules.victims->spelling();
  past.placement = rules.placement->name();
  past.waited_for = task.waited_for;
  past.clean = store_.segments().clean();
  past.utilisation = utilisation_of(store_.segments());
  return past;
}

Forecast Cleaner::forecast(const Task& task, const Rules& rules) {
  Workbench bench(store_, *rules.victims, *rules.placement, bad_, task, [](const std::string&) {});
  rules.victims->observe(bench.facts(), store_.log_clock().now());
  return rules.strategy->forecast(bench);
}

// --- state ----------------------------------------------------------------------------------------------------------------

std::string Cleaner::state() const {
  const Lock lock(state_mutex_);
  return state_;
}

void Cleaner::set_state(std::string state) {
  const Lock lock(state_mutex_);
  state_ = std::move(state);
}

}  // namespace varve::cleaner
