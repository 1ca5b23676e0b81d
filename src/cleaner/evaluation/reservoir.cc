// Cost-benefit with the age of a sample of the segment's blocks instead of its youngest one (device/reservoir.h). One hot
// block among cold ones does not make the segment look hot, but many that were written anew elsewhere do.
#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

constexpr std::size_t kSamples = 32;

class Sampled final : public SegmentEvaluation {
 public:
  std::string_view name() const override { return "reservoir"; }
  std::size_t samples() const override { return kSamples; }
  double score(const SegmentFacts& s) const override {
    const double age = s.sampled_age > 0 ? s.sampled_age : static_cast<double>(s.age);
    return s.garbage() * (age + 1) / (1 + s.utilisation());
  }
};

}  // namespace

std::unique_ptr<Evaluation> make_reservoir(const Parameters&) { return std::make_unique<Sampled>(); }

}  // namespace varve::cleaner
