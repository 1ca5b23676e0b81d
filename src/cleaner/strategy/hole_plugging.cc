// Hole-plugging: the emptiest segments (by the policy) are emptied into holes of the fullest (Matthews et al. 1997; best fit
// as in ScherlFS). It turns scattered free blocks into clean segments where copying has no room to begin with, or would
// write many blocks to free one. A segment of live share u costs u, and not u/(1-u), segments of writes.
#include <algorithm>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/logging.h"
#include "cleaner/plugger.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/workbench.h"
#include "segments/segment_table.h"
#include "store/store.h"

namespace varve::cleaner {
namespace {

class HolePlugging final : public Strategy {
 public:
  explicit HolePlugging(const PlugRules& rules) : rules_(rules) {}
  std::string_view name() const override { return "hole-plugging"; }

  Round run(Workbench& bench) override {
    Field field = survey(bench);
    Round round;
    round.left = bench.garbage();
    // Nodes are rewritten by the checkpoint; they take no part in this, but their segments have to be cleaned, too.
    bench.empty(field.nodes, round);
    if (round.failure) return round;
    Plugger plugger(bench.store(), bench.mover(), rules_);
    const auto worth = is_worth_it(bench, plugger, field);
    leave_out_unmapped(bench, plugger.unmapped(), field);
    if (worth.ok() && *worth) plug(bench, plugger, field, round);
    if (!worth.ok() && !bench.pin_unmapped(field.sources)) {
      round.why = worth.error().message();
      round.failure = worth.error();
    }
    if (!round.emptied.empty() || round.failure) return round;
    if (bench.task().for_room) return copying_->run(bench);  // the last resort
    round.finished = !bench.task().stopped();
    if (round.why.empty()) round.why = "no holes that would take what lives in other segments";
    return round;
  }

  Forecast forecast(Workbench& bench) const override {
    const Field field = survey(bench);
    Plugger plugger(bench.store(), bench.mover(), rules_);
    Forecast forecast;
    const auto plan = plugger.forecast(field.sources, field.others);
    if (!plan.ok()) return forecast;
    for (const PlugMove& move : plan->moves) forecast.writes += move.blocks;
    forecast.reads = forecast.writes;
    forecast.segments = plan->emptied.size() + field.nodes.ids.size();
    forecast.frees = forecast.segments * bench.store().segments().geometry().blocks - forecast.writes;
    forecast.what = fmt::format("plug holes with {}: {} pieces fit exactly, {} fill holes together, {} leave a rest, {} are split",
                                counted(forecast.writes, "block"), plan->perfect, plan->combined, plan->loose, plan->split);
    return forecast;
  }

 private:
  struct Field {
    std::vector<SegmentFacts> sources, others;
    Victims nodes;
  };

  Field survey(Workbench& bench) const {
    const std::uint64_t blocks = bench.store().segments().geometry().blocks;
    const std::uint64_t most = std::max<std::uint64_t>(1, bench.task().wanted / blocks);
    const Victims victims = bench.choose_all();
    Field field;
    std::vector<SegmentId> taken;
    std::uint64_t live = 0, holes = 0;  // of the sources; of the others
    for (const SegmentFacts& segment : bench.facts()) holes += segment.holds_nodes ? 0 : segment.dead();
    for (const SegmentFacts& segment : bench.pinned()) holes += segment.holds_nodes ? 0 : segment.dead();
    for (SegmentId id : victims.ids) {
      const SegmentFacts* segment = bench.find(id);
      if (!segment || std::ranges::count(taken, id)) continue;  // a plugin may say anything
      if (segment->holds_nodes && bench.may_move(0, field.nodes.nodes + segment->live)) {
        field.nodes.ids.push_back(id);
        field.nodes.nodes += segment->live;
        field.nodes.gain += segment->dead();
      }
      if (segment->holds_nodes || field.sources.size() == most || live + segment->live > Workbench::kMaxLivePerRound) continue;
      // A round that asks for all there is would else get no destination.
      const std::uint64_t others = holes - std::min<std::uint64_t>(holes, segment->dead());
      if (static_cast<double>(live + segment->live) * rules_.choice > static_cast<double>(others)) continue;
      holes = others;
      live += segment->live;
      field.sources.push_back(*segment);
      taken.push_back(id);
    }
    std::ranges::sort(taken);
    for (const SegmentFacts& segment : bench.facts())
      if (!segment.holds_nodes && !std::ranges::binary_search(taken, segment.id)) field.others.push_back(segment);
    field.others.insert(field.others.end(), bench.pinned().begin(), bench.pinned().end());
    return field;
  }

  // A clean segment for each that is emptied, less the nodes that the checkpoint writes into clean ones.
  Result<bool> is_worth_it(Workbench& bench, Plugger& plugger, Field& field) const {
    const PlugPlan plan = TRY(plugger.forecast(field.sources, field.others));
    if (plan.emptied.empty()) return false;
    field.sources.resize(plan.emptied.size());
    std::uint64_t moved = 0;
    for (const PlugMove& move : plan.moves) moved += move.blocks;
    const std::uint64_t gain = plan.emptied.size() * bench.store().segments().geometry().blocks;
    return gain > bench.metadata_cost(moved) / 2;
  }

  static void leave_out_unmapped(Workbench& bench, std::span<const SegmentFacts> unmapped, Field& field) {
    bench.pin_unmapped(unmapped);
    std::erase_if(field.others, [&](const SegmentFacts& segment) {
      return std::ranges::count(unmapped, segment.id, &SegmentFacts::id) > 0;
    });
  }

  static void plug(Workbench& bench, Plugger& plugger, const Field& field, Round& round) {
    bench.tell(fmt::format("plugging holes with what lives in {}", counted(field.sources.size(), "segment")));
    auto done = plugger.run(field.sources, field.others, [&] { return bench.task().ends(true); });
    if (!done.ok()) {
      log_warn("hole-plugging: {}", done.error().message());
      round.why = done.error().message();
      round.failure = done.error();
      return;
    }
    round.why = fmt::format("plugged holes of {} with what lived in {}: {} pieces fit exactly, {} together, {} loosely, "
                            "{} split{}{}",
                            counted(done->destinations, "segment"), done->emptied.size(), done->plan.perfect, done->plan.combined,
                            done->plan.loose, done->plan.split, done->why.empty() ? "" : "; ", done->why);
    for (SegmentId segment : done->pinned) bench.pin(segment);
    round.emptied.insert(round.emptied.end(), done->emptied.begin(), done->emptied.end());
  }

  const PlugRules rules_;
  const std::unique_ptr<Strategy> copying_ = make_copying({});
};

}  // namespace

std::unique_ptr<Strategy> make_hole_plugging(const Parameters& parameters) {
  PlugRules rules;
  rules.least_part = static_cast<std::uint32_t>(parameters.number("least", rules.least_part, 1, 256));
  rules.choice = parameters.number("choice", rules.choice, 1, 16);
  return std::make_unique<HolePlugging>(rules);
}

}  // namespace varve::cleaner
