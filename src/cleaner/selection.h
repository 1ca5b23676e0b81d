// Selection plugins: from scores to victims.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "cleaner/evaluation.h"

namespace varve::cleaner {

struct Victims {
  std::vector<SegmentId> ids;  // in the order they are cleaned in
  std::uint64_t data = 0;      // file blocks to move
  std::uint64_t nodes = 0;     // tree nodes to write anew
  std::uint64_t gain = 0;      // blocks freed beyond what is moved
  std::string_view why;        // which rule chose them, for the log; empty where there is only one
  std::uint64_t live() const { return data + nodes; }
};

struct SelectionLimits {
  std::uint64_t wanted = 0;      // blocks to free beyond what is moved
  double max_utilisation = 1.0;  // fuller segments gain too little to be worth their metadata
  // May as much as this be moved? Asked of the victims so far with one more, whose id is not among them yet.
  std::function<bool(const Victims&)> fits = [](const Victims&) { return true; };
};

// Called by one thread at a time. Deterministic, but for `random`.
class VictimSelection {
 public:
  virtual ~VictimSelection() = default;
  virtual std::string_view name() const = 0;
  virtual Victims select(std::span<const SegmentFacts> segments, const Evaluation& evaluation,
                         const SelectionLimits& limits, Random& random) const = 0;
};

// Candidates with their scores, those that may not be cleaned left out: what most selections begin with.
struct Candidate {
  double score = 0;
  const SegmentFacts* segment = nullptr;
};
std::vector<Candidate> candidates(std::span<const SegmentFacts> segments, const Evaluation& evaluation,
                                  const SelectionLimits& limits);
// Takes the segment unless it is too much to move. False: the limits are reached, nothing more is wanted.
bool take(Victims& victims, const SegmentFacts& segment, const SelectionLimits& limits);

Result<std::unique_ptr<VictimSelection>> make_selection(std::string_view spelling);

}  // namespace varve::cleaner
