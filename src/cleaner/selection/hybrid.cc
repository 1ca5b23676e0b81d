// Segregation while segments are mixed, the best scores otherwise; decided before every clean. A segment is mixed when its
// youngest block makes it look much younger than its blocks are on average: nine cold blocks and a hot one.
#include "cleaner/selection/builtin.h"

namespace varve::cleaner {
namespace {

class Hybrid final : public VictimSelection {
 public:
  Hybrid(std::unique_ptr<VictimSelection> best, std::unique_ptr<VictimSelection> segregation, double ratio, double share)
      : best_(std::move(best)), segregation_(std::move(segregation)), ratio_(ratio), share_(share) {}
  std::string_view name() const override { return "hybrid"; }
  Victims select(std::span<const SegmentFacts> segments, const Evaluation& evaluation, const SelectionLimits& limits,
                 Random& random) const override {
    const bool mixed = mixed_share(segments) > share_;
    Victims victims = (mixed ? segregation_ : best_)->select(segments, evaluation, limits, random);
    victims.why = mixed ? "segregation: segments are mixed" : "best: segments are not mixed";
    return victims;
  }

 private:
  double mixed_share(std::span<const SegmentFacts> segments) const {
    std::uint64_t mixed = 0, all = 0;
    for (const SegmentFacts& s : segments) {
      all += s.live;
      if (s.mean_age > ratio_ * (static_cast<double>(s.age) + s.blocks)) mixed += s.live;
    }
    return all ? static_cast<double>(mixed) / static_cast<double>(all) : 0;
  }

  const std::unique_ptr<VictimSelection> best_, segregation_;
  const double ratio_, share_;
};

}  // namespace

std::unique_ptr<VictimSelection> make_hybrid(const Parameters& p) {
  auto segregation = make_segregation(p);
  return std::make_unique<Hybrid>(make_best(p), std::move(segregation), p.number("ratio", 4, 1, 1e6),
                                  p.number("share", 0.5, 0, 1));
}

}  // namespace varve::cleaner
