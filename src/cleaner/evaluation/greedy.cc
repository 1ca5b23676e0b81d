// The one with the most garbage.
#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

class Greedy final : public SegmentEvaluation {
 public:
  std::string_view name() const override { return "greedy"; }
  double score(const SegmentFacts& s) const override { return s.dead(); }
};

}  // namespace

std::unique_ptr<Evaluation> make_greedy(const Parameters&) { return std::make_unique<Greedy>(); }

}  // namespace varve::cleaner
