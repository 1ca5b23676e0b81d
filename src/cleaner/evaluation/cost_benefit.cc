// (1-u)·age/(1+u): space gained, times how long it will last, over the cost of reading the segment and writing what
// lives (Rosenblum, Ousterhout, 1992). form=sqrt: (1-u)/u·√age, which SepBIT's published code uses (Wang et al., 2022).
#include <cmath>

#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

class CostBenefit final : public SegmentEvaluation {
 public:
  CostBenefit(bool root, bool mean) : root_(root), mean_(mean) {}
  std::string_view name() const override { return "cost-benefit"; }
  double score(const SegmentFacts& s) const override {
    const double u = s.utilisation();
    const double age = (mean_ ? s.mean_age : static_cast<double>(s.age)) + 1;
    if (root_) return (1 - u) / u * std::sqrt(static_cast<double>(s.sealed) + 1);
    return (1 - u) * age / (1 + u);
  }

 private:
  const bool root_, mean_;
};

}  // namespace

std::unique_ptr<Evaluation> make_cost_benefit(const Parameters& p) {
  return std::make_unique<CostBenefit>(p.word("form", {"linear", "sqrt"}) == "sqrt", p.word("age", {"youngest", "mean"}) == "mean");
}

}  // namespace varve::cleaner
