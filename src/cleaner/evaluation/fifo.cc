// The one that was filled first.
#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

class Fifo final : public SegmentEvaluation {
 public:
  std::string_view name() const override { return "fifo"; }
  double score(const SegmentFacts& s) const override { return static_cast<double>(s.sealed); }
};

}  // namespace

std::unique_ptr<Evaluation> make_fifo(const Parameters&) { return std::make_unique<Fifo>(); }

}  // namespace varve::cleaner
