// Cleaning policies on small writes, as in C. Wang and J. Xu, "Evaluating LFS Segment Cleaning Policies in NILFS2" (2025).
// Segments are of 8 MiB on a volume of 512 MiB. Writes of 32 KiB go to 128 MiB, uniform or 90 % of them to the upper
// 12.5 %.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace varve::bench {

struct PoliciesSetup {
  std::vector<std::uint64_t> counts = {12'000, 30'000};  // writes after which the distribution is shown
  // A forced clean, every `every` writes, takes `victims` segments if fewer than `room` are clean. The study says neither
  // how many it takes nor when it stops; these keep about 26 segments in use, so that they are 60 % live on average.
  unsigned every = 10, victims = 2, room = 36;
  std::string window = "8192";  // of segregation, in blocks of log clock
  std::vector<std::string> policies = {"timestamp", "timestamp:order=youngest", "greedy", "cost-benefit", "segregation"};
  std::vector<double> occupancies = {0.2, 0.3, 0.4, 0.5, 0.6, 0.7};  // for the write cost
  double volumes = 2;  // written for each of them, in volumes
  std::uint64_t seed = 1;
  bool distributions = true, costs = true;  // what is measured
  bool quick = false;  // a small volume and few writes: does it work?
};

// Prints its tables; returns them.
Json run_policies_study(const PoliciesSetup& setup);

}  // namespace varve::bench
