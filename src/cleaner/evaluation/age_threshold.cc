// F2FS's ATGC: only the oldest segments compete, the others are given time to die. Of those older than `older` blocks of
// log clock, the oldest `share` (but ten at least) get 60 points for age within the field and 40 for garbage.
#include <algorithm>
#include <vector>

#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

class AgeThreshold final : public Evaluation {
 public:
  AgeThreshold(double older, double share, double weight) : older_(older), share_(share), weight_(weight) {}
  std::string_view name() const override { return "age-threshold"; }

  void evaluate(std::span<const SegmentFacts> segments, std::span<double> scores) const override {
    std::fill(scores.begin(), scores.end(), kNever);
    std::vector<std::size_t> field;
    for (std::size_t i = 0; i < segments.size(); ++i)
      if (static_cast<double>(segments[i].age) >= older_ && segments[i].dead() > 0) field.push_back(i);
    std::sort(field.begin(), field.end(), [&](std::size_t a, std::size_t b) { return segments[a].age > segments[b].age; });
    const auto most = std::max<std::size_t>(10, static_cast<std::size_t>(share_ * static_cast<double>(field.size())));
    if (field.size() > most) field.resize(most);
    if (field.empty()) return;
    const auto oldest = static_cast<double>(segments[field.front()].age);
    const auto youngest = static_cast<double>(segments[field.back()].age);
    for (std::size_t i : field) {
      const double age = oldest > youngest ? (static_cast<double>(segments[i].age) - youngest) / (oldest - youngest) : 1;
      scores[i] = weight_ * 100 * age + (100 - weight_) * 100 * segments[i].garbage();
    }
  }

 private:
  const double older_, share_, weight_;
};

}  // namespace

std::unique_ptr<Evaluation> make_age_threshold(const Parameters& p) {
  return std::make_unique<AgeThreshold>(p.number("older", 0, 0, 1e18), p.number("share", 0.2, 0, 1),
                                        p.number("weight", 60, 0, 100));
}

}  // namespace varve::cleaner
