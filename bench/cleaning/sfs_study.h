// The figures of C. Min et al., "SFS: Random Write Considered Harmful in Solid State Drives" (FAST 2012): what grouping by
// hotness, the way of finding the groups, and cost-hotness are worth, by SFS's own measure of write cost.
#pragma once

#include <cstdint>
#include <vector>

#include "base/json_text.h"

namespace varve::bench {

// Bandwidths of SFS's SSD-M in MB/s: the model that turns counts of blocks into cost and throughput.
struct SfsDevice {
  double sequential_write = 87, random_read = 10.6;
};

struct SfsSetup {
  std::uint32_t segment_blocks = 256;
  std::uint64_t segments = 256;
  double updated = 0.25;   // part of all segments that the workload writes to; dummies fill up to the utilisation
  double warm_up = 3, measured = 2;  // writes, in numbers of blocks of the workload
  std::vector<double> utilisations = {0.5, 0.7, 0.8, 0.9};
  SfsDevice device;
  std::uint64_t seed = 1;
  bool groups = true, by_utilisation = true;  // what is measured
  bool quick = false;
};

// Prints its tables; returns them.
Json run_sfs_study(const SfsSetup& setup);

}  // namespace varve::bench
