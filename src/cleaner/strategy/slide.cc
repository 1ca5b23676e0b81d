#include "cleaner/strategy/slide.h"

#include <algorithm>

namespace varve::cleaner {

Board board_of(const segments::SegmentTable& segments) {
  Board board;
  const auto count = [&](SegmentId id, const segments::SegmentInfo&) {
    ++board.segments;
    board.end = id.v + 1;
  };
  segments.for_each(count, segments::SegmentTable::Which::in_use);
  return board;
}

std::vector<SegmentId> clean_below(const segments::SegmentTable& segments, std::uint64_t limit) {
  std::vector<SegmentId> clean;
  segments.for_each([&](SegmentId id, const segments::SegmentInfo& s) {
    if (id.v < limit && s.state == segments::SegmentState::clean) clean.push_back(id);
  });
  return clean;
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
