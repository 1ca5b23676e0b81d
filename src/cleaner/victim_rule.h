// An evaluation and a selection together: how victims are chosen.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cleaner/registry.h"

namespace varve::cleaner {

// As Evaluation and VictimSelection.
class VictimRule {
 public:
  // "EVALUATION", "SELECTION" or "EVALUATION+SELECTION", each with its parameters: "greedy", "segregation:window=4096",
  // "mdc+d-choices:d=20". An evaluation alone is selected by `best`; a selection alone evaluates by cost-benefit, but
  // d-choices by greedy. Errc::invalid says what there is.
  static Result<std::unique_ptr<VictimRule>> make(std::string_view spelling);

  const std::string& spelling() const { return spelling_; }
  std::size_t samples() const { return evaluation_->samples(); }
  void observe(std::span<const SegmentFacts> segments, std::uint64_t clock) { evaluation_->observe(segments, clock); }
  Victims choose(std::span<const SegmentFacts> segments, const SelectionLimits& limits, Random& random) const {
    return selection_->select(segments, *evaluation_, limits, random);
  }

 private:
  std::string spelling_;
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<VictimSelection> selection_;
};

// All that can stand alone, for help texts.
std::vector<PolicyName> victim_rules();

}  // namespace varve::cleaner
