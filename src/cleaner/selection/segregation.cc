// The best segment, and with it those of like age: |a - a*| < window. What is cleaned together is written together, so
// blocks of one age meet. seed=oldest begins with the oldest instead of the best, stop=segment ends once a segment's
// worth of live blocks is collected: two things that published code does and its text does not.
#include <algorithm>
#include <cmath>

#include "cleaner/selection/builtin.h"

namespace varve::cleaner {
namespace {

class Segregation final : public VictimSelection {
 public:
  Segregation(double window, bool oldest, bool stop) : window_(window), from_oldest_(oldest), stop_(stop) {}
  std::string_view name() const override { return "segregation"; }
  Victims select(std::span<const SegmentFacts> segments, const Evaluation& evaluation, const SelectionLimits& limits,
                 Random&) const override {
    auto field = candidates(segments, evaluation, limits);
    Victims victims;
    if (field.empty()) return victims;
    const auto seed = std::max_element(field.begin(), field.end(), [&](const Candidate& a, const Candidate& b) {
      return from_oldest_ ? a.segment->age < b.segment->age : a.score < b.score;
    });
    const auto centre = static_cast<double>(seed->segment->age);
    auto distance = [&](const Candidate& c) { return std::abs(static_cast<double>(c.segment->age) - centre); };
    std::iter_swap(field.begin(), seed);
    std::erase_if(field, [&](const Candidate& c) { return &c != &field.front() && distance(c) >= window_; });
    std::stable_sort(field.begin() + 1, field.end(),
                     [&](const Candidate& a, const Candidate& b) { return distance(a) < distance(b); });
    for (const Candidate& candidate : field) {
      if (stop_ && victims.live() >= candidate.segment->blocks) break;
      if (!take(victims, *candidate.segment, limits)) break;
    }
    return victims;
  }

 private:
  const double window_;
  const bool from_oldest_, stop_;
};

}  // namespace

std::unique_ptr<VictimSelection> make_segregation(const Parameters& p) {
  return std::make_unique<Segregation>(p.number("window", 65536, 1, 1e18), p.word("seed", {"best", "oldest"}) == "oldest",
                                       p.word("stop", {"none", "segment"}) == "segment");
}

}  // namespace varve::cleaner
