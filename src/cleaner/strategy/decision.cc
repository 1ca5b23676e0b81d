#include "cleaner/strategy/decision.h"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace varve::cleaner {

namespace {

// With time, segments are cleaned ahead of need only where it costs little: what is fuller loses more by itself before it
// must be cleaned than it costs to wait.
constexpr double kCheap = 0.5;
constexpr double kEnoughClean = 0.5;    // share of all segments that it is of use to have clean
constexpr double kWideSpread = 0.25;    // from which closing up what is live is worth its writes by itself, and…
constexpr double kNarrowSpread = 0.02;  // …when somebody asks for it
constexpr double kSeeks = 20;           // asked for, closing up is done where scattered writes cost so much

// What whole rounds have cost decides where it is clear: both sums have been taken from different moments.
std::optional<bool> filling_clearly_pays(const Situation& s) {
  constexpr double kClearly = 1.3;
  if (!s.has_plugging || s.copying <= 0 || s.filling <= 0) return std::nullopt;
  if (s.filling > kClearly * s.copying) return false;
  if (s.copying > kClearly * s.filling) return true;
  return std::nullopt;
}

Decision copy_or_plug(const Situation& s, std::string because) {
  double bound = plugging_pays_from(s.write_factor, s.metadata, s.handling);
  // What moving some blocks into holes has cost with everything is so much that users need not try it, whatever the requests say.
  constexpr double kHopeless = 3;
  if (s.filling <= 0 && s.copying > 0 && s.plugging > kHopeless * s.copying) bound = 1;
  Decision decision;
  decision.kind = Decision::Kind::copy;
  if (const std::optional<bool> clear = filling_clearly_pays(s)) {
    const bool fills = *clear;
    if (fills) decision.kind = Decision::Kind::plug;
    decision.threads = fills && s.for_room;
    const char* const what = decision.threads ? "plugging holes and writing small pieces into them" : fills ? "plugging holes" : "copying";
    decision.why = fmt::format("{}, {}: victims are {:.0f} % live, and {}", what, because, 100 * s.victims_live, s.costs);
    return decision;
  }
  const std::string costs = fmt::format("here a scattered write costs {:.1f} times a sequential one, and the work around moving a block "
                                        "{:.1f} times", s.write_factor, s.handling);
  if (s.has_plugging && s.victims_live > bound) {
    decision.kind = Decision::Kind::plug;
    decision.threads = s.for_room && s.knows_in_row && s.knows_scattered;  // users do not pay for a guess
    decision.why = fmt::format("plugging holes{}, {}: victims are {:.0f} % live, above {:.0f} % ({})",
                               decision.threads ? " and writing small pieces into them" : "", because, 100 * s.victims_live,
                               100 * bound, costs);
  } else {
    decision.why = fmt::format("copying, {}: victims are {:.0f} % live, {} {:.0f} % ({})", because, 100 * s.victims_live,
                               s.victims_live > bound ? "no plugging above" : "up to", 100 * bound, costs);
  }
  return decision;
}

Decision rest(std::string why) {
  Decision decision;
  decision.why = "resting: " + why;
  return decision;
}

Decision of_kind(Decision::Kind kind, std::string why) {
  Decision decision;
  decision.kind = kind;
  decision.why = std::move(why);
  return decision;
}

Decision when_idle(const Situation& s) {
  if (s.power == Power::battery) return rest("on battery only what is needed is done");
  if (s.clean < kEnoughClean && s.victims_live <= kCheap) {
    Decision decision = copy_or_plug(s, "there is time");
    decision.max_utilisation = kCheap;
    return decision;
  }
  if (s.seeks && s.spread >= kWideSpread)
    return of_kind(Decision::Kind::compact,
                   fmt::format("compacting, there is time: {:.0f} % of the log is clean segments in between, and seeks are dear here",
                               100 * s.spread));
  return rest(s.clean >= kEnoughClean ? "enough is clean" : "what could be cleaned is still more than half live");
}

Decision when_told(const Situation& s) {
  if (s.by_files) return of_kind(Decision::Kind::defragment, "defragmenting: files were named");
  if (s.victims_live < 1) return copy_or_plug(s, "asked for");
  if (s.spread > kNarrowSpread && s.write_factor >= kSeeks)
    return of_kind(Decision::Kind::compact,
                   fmt::format("compacting, asked for: {:.0f} % of the log is clean segments in between, and seeks are dear here",
                               100 * s.spread));
  return rest("no segment has enough garbage to be worth cleaning, and what is in use is not scattered enough to slow anything down");
}

}  // namespace

double plugging_pays_from(double write_factor, double metadata, double handling) {
  return std::clamp((write_factor - 1.0) / (std::max(write_factor, 1.0) + metadata + handling), 0.0, 1.0);
}

// Plugging would pay if scattered writes cost no more than twice as much: a device on which they do is not known before.
Trial trial_before(const Situation& s) {
  constexpr double kCheapScattered = 2;
  const double bound = plugging_pays_from(kCheapScattered, s.metadata, s.handling);
  const bool is_choice = s.has_plugging && s.victims_live < 1 && s.victims_live > bound;
  if (!is_choice || !s.for_room) return Trial::none;
  if (!s.knows_in_row || (s.filling > 0 && s.copying <= 0)) return Trial::copy;
  return s.knows_scattered ? Trial::none : Trial::plug;
}

Decision decide(const Situation& s) {
  if (s.for_room) return s.victims_live < 1 ? copy_or_plug(s, "room is needed") : rest("no segment is worth cleaning");
  return s.told ? when_told(s) : when_idle(s);
}

}  // namespace varve::cleaner
