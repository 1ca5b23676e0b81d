// A chain of age groups after MiDAS (Oh et al., 2024). What users write goes to group 1, and each time it is moved one
// group on. Blocks that keep dying before they are ever moved go to the hot group 0. Where MiDAS keeps two bits per
// block, the block's estimate says whether it kept dying young: it is hot when estimate and last interval are both below
// the mean life of group 1's segments.
#include <algorithm>
#include <atomic>

#include "cleaner/placement/builtin.h"

namespace varve::cleaner {
namespace {

class AgeChain final : public Placement {
 public:
  explicit AgeChain(unsigned groups) : groups_(groups) {}
  std::string_view name() const override { return "age-chain"; }
  unsigned groups() const override { return groups_; }
  std::uint8_t place(const WrittenBlock& block) const override {
    const double life = life_.load(std::memory_order_relaxed);
    return block.interval != kUnknown && static_cast<double>(block.interval) < life && block.estimate < life ? 0 : 1;
  }
  std::uint8_t place(const MovedBlock& block) const override {
    return static_cast<std::uint8_t>(std::min(std::max<unsigned>(block.group, 0) + 1, groups_ - 1));
  }
  void collected(const SegmentFacts& segment) override {
    if (segment.group != 1) return;
    const double life = life_.load(std::memory_order_relaxed);
    const auto lived = static_cast<double>(segment.opened);
    life_.store(life > 0 ? life + (lived - life) / 16 : lived, std::memory_order_relaxed);
  }
  std::vector<double> learned() const override { return {life_.load(std::memory_order_relaxed)}; }
  void restore(std::span<const double> learned) override {
    if (!learned.empty() && learned[0] > 0) life_ = learned[0];
  }

 private:
  const unsigned groups_;
  std::atomic<double> life_{0};
};

}  // namespace

std::unique_ptr<Placement> make_age_chain(const Parameters& p, const PlacementScale& scale) {
  return std::make_unique<AgeChain>(group_count(p, scale, 6, 3));
}

}  // namespace varve::cleaner
