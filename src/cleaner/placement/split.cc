// Users' blocks in one group, what the cleaner moves in another.
#include "cleaner/placement/builtin.h"

namespace varve::cleaner {
namespace {

class Split final : public Placement {
 public:
  std::string_view name() const override { return "split"; }
  unsigned groups() const override { return 2; }
  std::uint8_t place(const WrittenBlock&) const override { return 0; }
  std::uint8_t place(const MovedBlock&) const override { return 1; }
};

}  // namespace

std::unique_ptr<Placement> make_split(const Parameters&, const PlacementScale&) { return std::make_unique<Split>(); }

}  // namespace varve::cleaner
