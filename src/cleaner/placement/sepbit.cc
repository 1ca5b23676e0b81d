// SepBIT (Wang et al., 2022): what a user writes over soon after it was written will die soon again, what a cleaner moves
// dies the later the older it is. l is the mean life of the last 16 segments of group 0 that were collected. Users'
// blocks go to group 0 if the version they replace lived less than l, else to 1. What is moved out of group 0 goes to 2.
// Other moved blocks go by age: below 4l to 3, below 16l to 4, above to 5.
#include <array>
#include <atomic>

#include "cleaner/placement/builtin.h"

namespace varve::cleaner {
namespace {

class SepBit final : public Placement {
 public:
  std::string_view name() const override { return "sepbit"; }
  unsigned groups() const override { return 6; }
  std::uint8_t place(const WrittenBlock& block) const override {
    return block.interval < life_.load(std::memory_order_relaxed) ? 0 : 1;
  }
  std::uint8_t place(const MovedBlock& block) const override {
    if (block.group == 0) return 2;
    const std::uint64_t life = life_.load(std::memory_order_relaxed);
    if (life == kUnknown || block.age < 4 * life) return 3;
    return block.age < 16 * life ? 4 : 5;
  }
  void collected(const SegmentFacts& segment) override {
    if (segment.group != 0) return;
    sum_ += segment.opened;
    if (++count_ < kWindow) return;
    life_.store(sum_ / count_, std::memory_order_relaxed);
    sum_ = count_ = 0;
  }
  std::vector<double> learned() const override {
    const std::uint64_t life = life_.load(std::memory_order_relaxed);
    return {life == kUnknown ? 0 : static_cast<double>(life)};
  }
  void restore(std::span<const double> learned) override {
    if (!learned.empty() && learned[0] > 0 && learned[0] < 1e15) life_ = static_cast<std::uint64_t>(learned[0]);
  }

 private:
  static constexpr unsigned kWindow = 16;
  std::atomic<std::uint64_t> life_{kUnknown};
  std::uint64_t sum_ = 0, count_ = 0;
};

}  // namespace

std::unique_ptr<Placement> make_sepbit(const Parameters&, const PlacementScale&) { return std::make_unique<SepBit>(); }

}  // namespace varve::cleaner
