// SFS (Min et al., 2012): groups by hotness, their centres found by iterative segment quantisation over all segments before
// every clean. Where SFS counts writes per block, the block's estimate stands for writes over age; group 0 is the hottest.
// quantiser=equi-height and equi-width are there for comparison; they mean what the paper means by them.
#include <algorithm>

#include "base/mutex.h"
#include "cleaner/hotness.h"
#include "cleaner/placement/builtin.h"
#include "cleaner/placement/quantisation.h"

namespace varve::cleaner {
namespace {

class Sfs final : public Placement {
 public:
  Sfs(unsigned groups, Quantiser kind) : groups_(groups), kind_(kind) {}
  std::string_view name() const override { return "sfs"; }
  unsigned groups() const override { return groups_; }
  std::uint8_t place(const WrittenBlock& block) const override { return group_of(block.estimate); }
  std::uint8_t place(const MovedBlock& block) const override {
    return group_of(std::max(block.estimate, static_cast<double>(block.age)));
  }
  void observe(std::span<const SegmentFacts> segments, std::uint64_t) override {
    std::vector<double> hotness;
    for (const SegmentFacts& s : segments) hotness.push_back(hotness_of(s));
    const Lock lock(mutex_);
    centres_ = quantise(kind_, hotness, groups_, centres_);
  }
  std::vector<double> learned() const override {
    const Lock lock(mutex_);
    return centres_;
  }
  void restore(std::span<const double> learned) override {
    const Lock lock(mutex_);
    centres_.clear();
    for (double centre : learned)
      if (centre > 0 && centres_.size() < groups_) centres_.push_back(centre);
    std::sort(centres_.begin(), centres_.end());
  }

 private:
  // Nothing known of the block, or nothing of the groups yet: cold.
  std::uint8_t group_of(double interval) const {
    const auto coldest = static_cast<std::uint8_t>(groups_ - 1);
    if (interval <= 0) return coldest;
    const Lock lock(mutex_);
    if (centres_.empty()) return coldest;
    return static_cast<std::uint8_t>(coldest - nearest(centres_, 1 / interval));
  }

  const unsigned groups_;
  const Quantiser kind_;
  mutable Mutex mutex_;  // held for a few comparisons
  std::vector<double> centres_ GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Placement> make_sfs(const Parameters& p, const PlacementScale& scale) {
  const std::string_view quantiser = p.word("quantiser", {"iterative", "equi-height", "equi-width"});
  const auto kind = quantiser == "equi-height" ? Quantiser::equal_range
                    : quantiser == "equi-width" ? Quantiser::equal_count
                                                : Quantiser::iterative;
  return std::make_unique<Sfs>(group_count(p, scale, 4, 1), kind);
}

}  // namespace varve::cleaner
