// The best of d segments drawn by lot, again and again: nearly as good as looking at all of them (Van Houdt, 2013).
#include "cleaner/selection/builtin.h"

namespace varve::cleaner {
namespace {

class DChoices final : public VictimSelection {
 public:
  explicit DChoices(unsigned d) : d_(d) {}
  std::string_view name() const override { return "d-choices"; }
  Victims select(std::span<const SegmentFacts> segments, const Evaluation& evaluation, const SelectionLimits& limits,
                 Random& random) const override {
    auto left = candidates(segments, evaluation, limits);
    Victims victims;
    while (!left.empty()) {
      std::size_t best = random.next() % left.size();
      for (unsigned i = 1; i < d_; ++i)
        if (const std::size_t other = random.next() % left.size(); left[other].score > left[best].score) best = other;
      const SegmentFacts& segment = *left[best].segment;
      left[best] = left.back();
      left.pop_back();
      if (!take(victims, segment, limits)) break;
    }
    return victims;
  }

 private:
  const unsigned d_;
};

}  // namespace

std::unique_ptr<VictimSelection> make_d_choices(const Parameters& p) {
  return std::make_unique<DChoices>(static_cast<unsigned>(p.number("d", 10, 1, 1000)));
}

}  // namespace varve::cleaner
