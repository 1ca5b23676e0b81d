// Leaving: what lives at or beyond the limit (log::SegmentTable) is moved below it, because the filesystem is to end there
// (checkpoint/reshaping.h). The highest segments go first, and segments keep their groups. Where there is no room below for that, what is
// worth it is copied together there, as by copying. Not for users to choose: `varve resize` does.
#include <fmt/format.h>

#include "base/counted.h"
#include "cleaner/strategy/builtin.h"
#include "cleaner/workbench.h"
#include "segments/segment_table.h"
#include "store/store.h"

namespace varve::cleaner {
namespace {

class Leaving final : public Strategy {
 public:
  std::string_view name() const override { return "leaving"; }

  void begin(store::Store& store) override { store.segments().prefer_lowest(true); }
  void end(store::Store& store) override { store.segments().prefer_lowest(false); }

  Round run(Workbench& bench) override {
    Round round;
    const Victims victims = choose(bench, round);
    if (victims.ids.empty()) {
      make_room(bench, round);
      return round;
    }
    round.why = fmt::format("moving {} out of {} at the end", counted(victims.live(), "block"), counted(victims.ids.size(), "segment"));
    bench.tell(round.why);
    bench.empty(victims, round, [&](const LiveBlock& block, const SegmentFacts& from) {
      return from.group < format::kMaxGroups ? from.group : bench.group_of(block, from);
    });
    return round;
  }

  Forecast forecast(Workbench& bench) const override {
    Round round;
    const Victims victims = choose(bench, round);
    Forecast forecast;
    forecast.segments = victims.ids.size();
    forecast.reads = forecast.writes = victims.data;
    forecast.what = fmt::format("move {} out of {} at the end", counted(victims.live(), "live block"),
                                counted(victims.ids.size(), "segment"));
    return forecast;
  }

 private:
  static Victims choose(Workbench& bench, Round& round) {
    const std::uint64_t limit = bench.store().segments().end().limit();
    const std::span<const SegmentFacts> facts = bench.facts();
    Victims victims;
    bool fits = true;
    for (auto at = facts.rbegin(); at != facts.rend() && at->id.v >= limit; ++at) {
      round.left += at->live;
      Victims with{{}, victims.data, victims.nodes, victims.gain + at->dead(), {}};
      (at->holds_nodes ? with.nodes : with.data) += at->live;
      fits = fits && with.live() <= Workbench::kMaxLivePerRound && bench.may_move(with.data, with.nodes);
      if (!fits) continue;
      with.ids = std::move(victims.ids);
      with.ids.push_back(at->id);
      victims = std::move(with);
    }
    return victims;
  }

  static void make_room(Workbench& bench, Round& round) {
    const auto victims = bench.choose_worthwhile();
    if (!victims) {
      round.finished = true;
      round.why = round.left ? "there is no room for what stands at the end" : "nothing at the end can be moved now";
      return;
    }
    round.why = fmt::format("copying {} out of {}, to make room for what stands at the end", counted(victims->live(), "live block"),
                            counted(victims->ids.size(), "segment"));
    bench.tell(round.why);
    bench.empty(*victims, round);
  }
};

}  // namespace

std::unique_ptr<Strategy> make_leaving() { return std::make_unique<Leaving>(); }

}  // namespace varve::cleaner
