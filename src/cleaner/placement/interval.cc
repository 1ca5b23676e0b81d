// Streams by estimated rewrite interval, an octave each: stream = floor(log2(estimate / capacity) + 8), clamped. A block
// older than its estimate is placed by its age. Blocks of which nothing is known are as cold as can be.
#include <algorithm>
#include <cmath>

#include "cleaner/placement/builtin.h"

namespace varve::cleaner {
namespace {

class Interval final : public Placement {
 public:
  Interval(unsigned groups, std::uint64_t capacity, double offset)
      : groups_(groups), capacity_(static_cast<double>(std::max<std::uint64_t>(capacity, 1))), offset_(offset) {}
  std::string_view name() const override { return "interval"; }
  unsigned groups() const override { return groups_; }
  std::uint8_t place(const WrittenBlock& block) const override { return stream(block.estimate); }
  std::uint8_t place(const MovedBlock& block) const override {
    return stream(std::max(block.estimate, static_cast<double>(block.age)));
  }

 private:
  std::uint8_t stream(double interval) const {
    if (interval <= 0) return static_cast<std::uint8_t>(groups_ - 1);
    const double at = std::floor(std::log2(interval / capacity_) + offset_);
    return static_cast<std::uint8_t>(std::clamp(at, 0.0, static_cast<double>(groups_ - 1)));
  }

  const unsigned groups_;
  const double capacity_, offset_;
};

}  // namespace

std::unique_ptr<Placement> make_interval(const Parameters& p, const PlacementScale& scale) {
  return std::make_unique<Interval>(group_count(p, scale, 12, 2), scale.capacity, p.number("offset", 8, 0, 24));
}

}  // namespace varve::cleaner
