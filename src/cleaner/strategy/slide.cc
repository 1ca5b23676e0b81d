#include "cleaner/strategy/slide.h"

#include <algorithm>

namespace varve::cleaner {

Board board_of(const log::SegmentTable& segments) {
  Board board;
  segments.for_each([&](SegmentId id, const log::SegmentInfo& s) {
    if (s.state == log::SegmentState::clean) return board.clean.push_back(id);
    ++board.segments;
    board.end = id.v + 1;
  });
  return board;
}

Victims plan_slide(std::span<const SegmentFacts> used, std::span<const SegmentId> clean, const SlideLimits& limits) {
  Victims victims;
  const auto below = std::lower_bound(clean.begin(), clean.end(), SegmentId{limits.segments});
  const auto room = static_cast<std::size_t>(below - clean.begin());
  for (auto at = used.rbegin(); at != used.rend() && at->id.v >= limits.segments; ++at) {
    if (victims.ids.size() >= room) break;
    Victims with{{}, victims.data, victims.nodes, victims.gain + at->dead(), {}};
    (at->holds_nodes ? with.nodes : with.data) += at->live;
    if (!limits.fits(with)) break;
    with.ids = std::move(victims.ids);
    with.ids.push_back(at->id);
    victims = std::move(with);
  }
  return victims;
}

}  // namespace varve::cleaner
