// The highest scores, as many as are wanted.
#include <algorithm>

#include "cleaner/selection/builtin.h"

namespace varve::cleaner {
namespace {

class Best final : public VictimSelection {
 public:
  std::string_view name() const override { return "best"; }
  Victims select(std::span<const SegmentFacts> segments, const Evaluation& evaluation, const SelectionLimits& limits,
                 Random&) const override {
    auto ranked = candidates(segments, evaluation, limits);
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    Victims victims;
    for (const Candidate& candidate : ranked)
      if (!take(victims, *candidate.segment, limits)) break;
    return victims;
  }
};

}  // namespace

std::unique_ptr<VictimSelection> make_best(const Parameters&) { return std::make_unique<Best>(); }

}  // namespace varve::cleaner
