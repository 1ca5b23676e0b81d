#include "cleaner/selection.h"

namespace varve::cleaner {

std::vector<Candidate> candidates(std::span<const SegmentFacts> segments, const Evaluation& evaluation,
                                  const SelectionLimits& limits) {
  std::vector<double> scores(segments.size());
  evaluation.evaluate(segments, scores);
  std::vector<Candidate> result;
  result.reserve(segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i)
    if (scores[i] != Evaluation::kNever && segments[i].utilisation() <= limits.max_utilisation)
      result.push_back({scores[i], &segments[i]});
  return result;
}

bool take(Victims& victims, const SegmentFacts& segment, const SelectionLimits& limits) {
  if (victims.gain >= limits.wanted) return false;
  Victims with{{}, victims.data, victims.nodes, victims.gain + segment.dead(), {}};
  (segment.holds_nodes ? with.nodes : with.data) += segment.live;
  if (!limits.fits(with)) return true;
  victims.ids.push_back(segment.id);
  victims.data = with.data;
  victims.nodes = with.nodes;
  victims.gain = with.gain;
  return victims.gain < limits.wanted;
}

}  // namespace varve::cleaner
