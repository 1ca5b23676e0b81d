// A cleaner plugin to copy: an evaluation and a placement in a shared object.
//
//   c++ -std=c++20 -shared -fPIC -I src examples/cleaner-plugin/patient.cc -o patient.so
//
//   varve mount -o plugin=./patient.so,policy=patient:wait=10000,placement=by-novelty data.img DIR
//
// src/cleaner/evaluation, selection and placement hold those that come with Varve, one file each.
#include "cleaner/registry.h"

namespace {

using namespace varve::cleaner;

// Greedy, but a segment that has just been filled is left alone for `wait` blocks of log clock. Much of it may die yet.
class Patient final : public SegmentEvaluation {
 public:
  explicit Patient(double wait) : wait_(wait) {}
  std::string_view name() const override { return "patient"; }
  double score(const SegmentFacts& s) const override {
    return static_cast<double>(s.sealed) < wait_ ? kNever : s.dead();
  }

 private:
  const double wait_;
};

// What is written for the first time in one group, what is written over in a second, what is moved in a third.
class ByNovelty final : public Placement {
 public:
  std::string_view name() const override { return "by-novelty"; }
  unsigned groups() const override { return 3; }
  std::uint8_t place(const WrittenBlock& block) const override { return block.interval == kUnknown ? 0 : 1; }
  std::uint8_t place(const MovedBlock&) const override { return 2; }
};

}  // namespace

VARVE_CLEANER_PLUGIN(registry) {
  auto added = registry.evaluations.add("patient", "greedy among segments older than wait=", [](const Parameters& p) {
    return std::make_unique<Patient>(p.number("wait", 4096, 0, 1e18));
  });
  if (!added.ok()) return added;
  return registry.placements.add("by-novelty", "new, written over, moved",
                                 [](const Parameters&, const PlacementScale&) { return std::make_unique<ByNovelty>(); });
}
