// Tries crashes of one script, or of scripts by the thousand, and keeps count.
#pragma once

#include <cstdint>
#include <string>

#include "support/crash_scenario.h"

namespace varve::test {

struct SweepOptions {
  CutPlan plan;
  // Each of these applies to one state in so many; 0: to none.
  unsigned check_every = 20;
  unsigned go_on_every = 30;
  unsigned second_every = 25;
  unsigned second_cuts = 2;
};

// Every cut of the plan. Empty, or the explanation of the first failure.
std::string sweep(const CrashSetup& setup, const DurableState& start, const Script& preparation, const Script& script,
                  const SweepOptions& options);

// prepare() and sweep(): for hazards, where each cut counts and the script is short.
std::string sweep_all(const CrashSetup& setup, const std::string& preparation, const std::string& script,
                      const SweepOptions& options);
SweepOptions exhaustive();

// Crash states verified by this process.
std::uint64_t states_tried();

}  // namespace varve::test
