// (1-U)/(2·U·H), of SFS (Min et al., 2012). H is the segment's mean rate of rewrites: by the estimates its blocks carry,
// but never more than their age allows, since a block not written for long has grown cold whatever it once was.
#include "cleaner/evaluation/builtin.h"
#include "cleaner/hotness.h"

namespace varve::cleaner {
namespace {

class CostHotness final : public SegmentEvaluation {
 public:
  std::string_view name() const override { return "cost-hotness"; }
  double score(const SegmentFacts& s) const override {
    return s.garbage() / (2 * s.utilisation() * hotness_of(s));
  }
};

}  // namespace

std::unique_ptr<Evaluation> make_cost_hotness(const Parameters&) { return std::make_unique<CostHotness>(); }

}  // namespace varve::cleaner
