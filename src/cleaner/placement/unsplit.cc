// None: users' and cleaner's blocks share one head.
#include "cleaner/placement/builtin.h"

namespace varve::cleaner {
namespace {

class Unsplit final : public Placement {
 public:
  std::string_view name() const override { return "none"; }
  unsigned groups() const override { return 1; }
  std::uint8_t place(const WrittenBlock&) const override { return 0; }
  std::uint8_t place(const MovedBlock&) const override { return 0; }
};

}  // namespace

std::unique_ptr<Placement> make_unsplit(const Parameters&, const PlacementScale&) { return std::make_unique<Unsplit>(); }

}  // namespace varve::cleaner
