// Adaptive (ScherlFS, section on further work): before each round it looks at how full what could be cleaned is, and what scattered
// writes cost on this device. It looks at how much is clean already, whether there is time, and whether the machine runs on its battery.
// Then it chooses a strategy and how far that goes. What it decided, and why, is in the status.
#include <algorithm>
#include <array>
#include <iterator>

#include <fmt/format.h>

#include "cleaner/cost_ledger.h"
#include "cleaner/plugger.h"
#include "cleaner/registry.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/strategy/decision.h"
#include "cleaner/strategy/slide.h"
#include "cleaner/workbench.h"
#include "device/io_context.h"
#include "device/write_cost.h"
#include "segments/counters.h"
#include "space/admission.h"
#include "space/hole_feeder.h"
#include "space/space.h"
#include "store/store.h"

namespace varve::cleaner {
namespace {

class Adaptive final : public Strategy {
 public:
  explicit Adaptive(const Parameters& parameters) : power_(parameters.word("power", {"auto", "mains", "battery"})) {}

  std::string_view name() const override { return "adaptive"; }
  bool works_when_idle() const override { return true; }
  bool goes_by_files() const override { return true; }

  void begin(store::Store&) override {
    const Lock lock(mutex_);
    ended_ = false;
  }
  void end(store::Store& store) override {
    {
      const Lock lock(mutex_);
      ended_ = true;  // a round may be on its way: from now on it begins nothing
    }
    switch_to(nullptr, store);
    thread(false, store);
  }

  // A trial is a round by itself, so that what it costs is seen.
  Round run(Workbench& bench) override {
    Round round;
    if (try_out(bench, round)) return round;
    Round rest = run_rest(bench);
    rest.emptied.insert(rest.emptied.begin(), round.emptied.begin(), round.emptied.end());
    return rest;
  }

  // As run(), when the device is known as far as it can be.
  Round run_rest(Workbench& bench) {
    Situation now = situation(bench);
    const Decision decision = decide(now);
    if (now.victims_live > 0 && now.victims_live < 1) live_ = now.victims_live;
    Round round = run_once(bench, decision);
    if (!round.finished || round.moved || !round.emptied.empty() || now.victims_live == 1) return round;
    now.victims_live = 1;  // there was nothing to clean after all
    return run_once(bench, decide(now));
  }

  // Only a round tells how full the victims are: as they were last.
  void reconsider(store::Store& store, const CostLedger& costs) override {
    Situation s;
    s.copying = costs.copying(live_);
    s.filling = costs.filling(live_);
    s.costs = costs.text(live_);
    s.victims_live = std::max(live_, 0.01);
    s.has_plugging = true;  // and by the formula it goes on
    const Decision decision = decide(s);
    if (decision.kind == Decision::Kind::plug) return;
    explain(decision.why);
    thread(false, store);
  }

  FileCounts files(store::Store& store) override {
    const auto& defragmenting = strategies_[static_cast<std::size_t>(Decision::Kind::defragment)];
    return defragmenting ? defragmenting->files(store) : FileCounts();
  }

  Forecast forecast(Workbench& bench) const override {
    const Decision decision = decide(situation(bench));
    if (decision.kind == Decision::Kind::rest) {
      Forecast forecast;
      forecast.what = "do nothing: " + decision.why;
      return forecast;
    }
    auto made = make_strategy(spelling_of(decision.kind));
    Forecast forecast = made.ok() ? (*made)->forecast(bench) : Forecast();
    forecast.what += fmt::format(" ({})", decision.why);
    return forecast;
  }

  std::string explanation() const override {
    const Lock lock(mutex_);
    return explanation_;
  }

 private:
  static std::string_view spelling_of(Decision::Kind kind) {
    switch (kind) {
      case Decision::Kind::plug: return "hole-plugging";
      case Decision::Kind::compact: return "compacting";
      case Decision::Kind::defragment: return "defragmenting";
      default: return "copying";
    }
  }

  // One segment by the strategy of which the cost is only assumed, as far as a moment goes. What comes in long pieces only says
  // nothing about short ones: after some rounds the guess has to do. True: something has been moved.
  bool try_out(Workbench& bench, Round& round) {
    constexpr unsigned kMostTrials = 8;
    const Trial trial = trial_before(situation(bench));
    if (trial == Trial::none) trials_ = 0;
    if (trial == Trial::none || trials_ == kMostTrials) return false;
    ++trials_;
    const std::uint64_t before = bench.store().counters().cleaned_blocks;
    try_one(bench, trial, round);
    return bench.store().counters().cleaned_blocks > before;
  }

  static void try_one(Workbench& bench, Trial trial, Round& round) {
    const auto victims = bench.choose_worthwhile();
    if (!victims) return;
    const auto chosen = std::ranges::find_if(victims->ids, [&](SegmentId id) {
      const SegmentFacts* segment = bench.find(id);
      return segment && !segment->holds_nodes;
    });
    if (chosen == victims->ids.end()) return;
    bench.tell("finding out what writes cost on this device");
    if (trial == Trial::copy) copy_one(bench, *chosen, round.emptied);
    else plug_one(bench, *bench.find(*chosen), round.emptied);
  }

  static void copy_one(Workbench& bench, SegmentId victim, std::vector<SegmentId>& emptied) {
    Round round;
    Victims one;
    one.ids = {victim};
    bench.empty(one, round);
    note_emptied(bench, round.emptied, emptied);
  }

  static void plug_one(Workbench& bench, const SegmentFacts& victim, std::vector<SegmentId>& emptied) {
    std::vector<SegmentFacts> others;
    std::ranges::copy_if(bench.facts(), std::back_inserter(others),
                         [&](const SegmentFacts& s) { return s.id != victim.id && !s.holds_nodes; });
    const device::WriteCost& cost = bench.store().io().write_cost();
    bench.mover().begin_trial();
    Plugger plugger(bench.store(), bench.mover(), {});
    const auto done = plugger.run({&victim, 1}, others, [&] { return cost.knows_scattered(); });
    bench.mover().end_trial();
    if (!done.ok()) return;
    note_emptied(bench, done->emptied, emptied);
    for (SegmentId segment : done->pinned) bench.pin(segment);
  }

  static void note_emptied(Workbench& bench, const std::vector<SegmentId>& fresh, std::vector<SegmentId>& emptied) {
    emptied.insert(emptied.end(), fresh.begin(), fresh.end());
    bench.leave_out(fresh);
  }

  Round run_once(Workbench& bench, const Decision& decision) {
    explain(decision.why);
    if (bench.task().for_room) thread(decision.threads, bench.store());
    Strategy* chosen = strategy_for(decision.kind);
    switch_to(chosen, bench.store());
    if (!chosen) {
      Round round;
      round.finished = true;
      round.why = decision.why;
      return round;
    }
    bench.clean_only(0, decision.max_utilisation);
    Round round = chosen->run(bench);
    bench.clean_only(0, 1);
    // Closing up comes last: until then there is more left to do.
    if (decision.kind != Decision::Kind::compact && decision.kind != Decision::Kind::defragment) round.left += 1ULL << 40;
    return round;
  }

  // Some strategies change where the log writes while they are in use.
  void switch_to(Strategy* strategy, store::Store& store) {
    const Lock lock(mutex_);
    if (strategy == active_ || (strategy && ended_)) return;
    if (active_) active_->end(store);
    active_ = strategy;
    if (active_) active_->begin(store);
  }

  // Where holes are filled with what lives in victims, users' blocks may as well go there at once, and need not be moved. Of
  // files that are written here and there nothing is lost by that; larger pieces stay together.
  void thread(bool wanted, store::Store& store) {
    constexpr std::uint32_t kMostPiece = 8;
    space::HoleFeederRules rules;
    rules.least_run = 1;
    rules.below = store.space().low_water() + 2 * segments_ahead(store);  // cleaning makes half of these
    rules.most_piece = kMostPiece;
    rules.spares_cleaning = true;
    const Lock lock(mutex_);
    if (wanted == threads_ || (wanted && ended_)) return;
    threads_ = wanted;
    if (wanted) store.hole_feeder().begin(this, rules);
    else store.hole_feeder().end(this);
  }

  // Kept between rounds: some go on where they were.
  Strategy* strategy_for(Decision::Kind kind) {
    if (kind == Decision::Kind::rest) return nullptr;
    auto& slot = strategies_[static_cast<std::size_t>(kind)];
    if (!slot)
      if (auto made = make_strategy(spelling_of(kind)); made.ok()) slot = std::move(*made);
    return slot.get();
  }

  Situation situation(Workbench& bench) const {
    Situation s;
    const Task& task = bench.task();
    s.for_room = task.for_room;
    s.told = task.told;
    s.by_files = task.files_named;
    s.power = power_ == "auto" ? read_power() : power_ == "battery" ? Power::battery : Power::mains;
    const Victims victims = bench.choose();
    if (bench.is_worth_it(victims) || task.waited_for)
      s.victims_live = live_share(bench, victims);
    else
      s.victims_live = 1;
    const segments::SegmentTable& segments = bench.store().segments();
    const Board board = board_of(segments);
    s.clean = static_cast<double>(segments.clean()) / static_cast<double>(segments.geometry().count);
    s.spread = board.spread();
    const device::WriteCost& cost = bench.store().io().write_cost();
    s.write_factor = cost.factor();
    s.handling = cost.handling();
    s.knows_in_row = cost.knows_in_row();
    s.knows_scattered = cost.knows_scattered();
    s.seeks = cost.seeks();
    if (task.costs) {
      // What holds only nodes now and then, or nothing, is no reason to change over.
      const double live = s.victims_live > 0 && s.victims_live < 1 ? s.victims_live : live_;
      s.plugging = task.costs->plugging();
      s.copying = task.costs->copying(live);
      s.filling = task.costs->filling(live);
      s.costs = task.costs->text(live);
    }
    s.metadata = bench.metadata_share(victims);
    s.has_plugging = registry().strategies.contains("hole-plugging");
    return s;
  }

  // Of segments with blocks of files: those with tree nodes are emptied in the same way whatever is decided, and there is
  // little in them.
  static double live_share(const Workbench& bench, const Victims& victims) {
    std::uint64_t live = 0, blocks = 0;
    for (SegmentId id : victims.ids) {
      const SegmentFacts* segment = bench.find(id);
      if (!segment || segment->holds_nodes) continue;
      live += segment->live;
      blocks += segment->blocks;
    }
    return blocks ? static_cast<double>(live) / static_cast<double>(blocks) : 0;
  }

  void explain(const std::string& why) {
    const Lock lock(mutex_);
    explanation_ = why;
  }

  const std::string power_;
  unsigned trials_ = 0;  // without a result
  double live_ = 0;      // share, of the last victims
  std::array<std::unique_ptr<Strategy>, 5> strategies_;
  mutable Mutex mutex_{LockRank::strategy};  // of the rest
  Strategy* active_ GUARDED_BY(mutex_) = nullptr;
  bool ended_ GUARDED_BY(mutex_) = false, threads_ GUARDED_BY(mutex_) = false;
  std::string explanation_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Strategy> make_adaptive(const Parameters& parameters) { return std::make_unique<Adaptive>(parameters); }

}  // namespace varve::cleaner
