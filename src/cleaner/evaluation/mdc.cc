// Minimum declining cost (Lomet, Luo, 2020): clean where waiting would make cleaning cheaper by the least. Waiting pays
// Λ/E², with Λ the rewrites per block of log clock that the segment's live blocks still get and E its share of garbage.
// A rate that the segment's own age contradicts is not believed (cap=off: it is): stale estimates would shield a segment
// for ever once a hot set has moved on.
#include <algorithm>

#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

class Mdc final : public SegmentEvaluation {
 public:
  explicit Mdc(bool capped) : capped_(capped) {}
  std::string_view name() const override { return "mdc"; }
  double score(const SegmentFacts& s) const override {
    const double by_age = s.live / (static_cast<double>(s.sealed) + 1);
    double rate = s.rate_sum;
    if (rate <= 0 || (capped_ && rate > by_age)) rate = by_age;
    return s.garbage() * s.garbage() / rate;
  }

 private:
  const bool capped_;
};

}  // namespace

std::unique_ptr<Evaluation> make_mdc(const Parameters& p) {
  return std::make_unique<Mdc>(p.word("cap", {"on", "off"}) != "off");
}

}  // namespace varve::cleaner
