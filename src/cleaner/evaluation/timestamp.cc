// The oldest by its last change first, as NILFS2 does. order=youngest is what the code of one published study does
// instead of what its text says (both are kept so that they can be compared).
#include "cleaner/evaluation/builtin.h"

namespace varve::cleaner {
namespace {

class Timestamp final : public SegmentEvaluation {
 public:
  explicit Timestamp(bool youngest) : youngest_(youngest) {}
  std::string_view name() const override { return "timestamp"; }
  double score(const SegmentFacts& s) const override {
    const auto age = static_cast<double>(s.age);
    return youngest_ ? -age : age;
  }

 private:
  const bool youngest_;
};

}  // namespace

std::unique_ptr<Evaluation> make_timestamp(const Parameters& p) {
  return std::make_unique<Timestamp>(p.word("order", {"oldest", "youngest"}) == "youngest");
}

}  // namespace varve::cleaner
