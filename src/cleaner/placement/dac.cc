// DAC (Chiang, Lee, Chang, 1999): a block climbs one level each time a user writes it and falls one each time it is moved.
// Its level is the group it stands in.
#include <algorithm>

#include "cleaner/placement/builtin.h"

namespace varve::cleaner {
namespace {

class Dac final : public Placement {
 public:
  explicit Dac(unsigned levels) : levels_(levels) {}
  std::string_view name() const override { return "dac"; }
  unsigned groups() const override { return levels_; }
  std::uint8_t place(const WrittenBlock& block) const override {
    if (block.group >= levels_) return 0;
    return static_cast<std::uint8_t>(std::min(block.group + 1u, levels_ - 1));
  }
  std::uint8_t place(const MovedBlock& block) const override {
    return static_cast<std::uint8_t>(std::min<unsigned>(std::max<int>(block.group - 1, 0), levels_ - 1));
  }

 private:
  const unsigned levels_;
};

}  // namespace

std::unique_ptr<Placement> make_dac(const Parameters& p, const PlacementScale& scale) {
  return std::make_unique<Dac>(group_count(p, scale, 6, 2));
}

}  // namespace varve::cleaner
