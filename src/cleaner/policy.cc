#include "cleaner/policy.h"

#include <algorithm>

namespace varve::cleaner {

namespace {

class Greedy : public VictimPolicy {
 public:
  std::string_view name() const override { return "greedy"; }
  double score(const SegmentSummary& s) const override { return static_cast<double>(s.blocks - s.live); }
};

class CostBenefit : public VictimPolicy {
 public:
  std::string_view name() const override { return "cost-benefit"; }
  double score(const SegmentSummary& s) const override {
    const double u = s.utilisation();
    return (1 - u) * static_cast<double>(s.age + 1) / (1 + u);
  }
};

}  // namespace

std::unique_ptr<VictimPolicy> make_victim_policy(std::string_view name) {
  if (name == "greedy") return std::make_unique<Greedy>();
  if (name == "cost-benefit") return std::make_unique<CostBenefit>();
  return nullptr;
}

Selection select_victims(const VictimPolicy& policy, std::span<const SegmentSummary> segments, std::uint64_t wanted,
                         double max_utilisation, const std::function<bool(const Selection&)>& fits) {
  std::vector<std::pair<double, const SegmentSummary*>> ranked;
  for (const SegmentSummary& s : segments)
    if (s.utilisation() <= max_utilisation) ranked.emplace_back(policy.score(s), &s);
  std::sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  Selection selection;
  for (const auto& [score, s] : ranked) {
    if (selection.gain >= wanted) break;
    Selection with{{}, selection.data, selection.nodes, selection.gain + s->blocks - s->live};
    (s->holds_nodes ? with.nodes : with.data) += s->live;
    if (!fits(with)) continue;
    selection.data = with.data;
    selection.nodes = with.nodes;
    selection.gain = with.gain;
    selection.victims.push_back(s->id);
  }
  return selection;
}

}  // namespace varve::cleaner
