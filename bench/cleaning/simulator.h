// A log-structured store without data: which block stands where, and nothing else. It runs the same policy classes as the
// filesystem, a hundred times faster: for searching parameters. What counts is measured on the engine (engine_run.h).
#pragma once

#include <cstdint>
#include <string>

#include "workload.h"

namespace varve::bench {

struct RunSetup {
  std::uint32_t segment_blocks = 512;
  std::uint64_t segments = 512;
  double utilisation = 0.9;
  double writes = 14;       // in N, the number of live blocks
  double measured = 0.4;    // the last part of the writes that counts
  std::string victims, placement;
  std::string strategy = "copying";  // of the engine; the simulator knows copying only
  std::string workload;
  std::uint64_t seed = 1;
};

struct RunResult {
  std::uint64_t blocks = 0;         // N
  double write_amplification = 0;   // (user + moved) / user
  double utilisation = 0;           // effective: live over what holds it, mean while measured
  double bound = 0;                 // 0: none is known for this workload
  double metadata = 0;              // tree nodes and maps, per user block
  double headers = 0;               // chunk headers, per user block
  // Of the engine only:
  double refilled = 0;              // of what was written, into holes of used segments, per user block
  double moved_per_segment = 0;     // blocks, for each segment that was emptied
  std::uint64_t fragments = 0;      // of the file, at the end
  std::vector<double> course;       // write amplification of each tenth of N written
  double gap() const { return bound > 1 ? (write_amplification - 1) / (bound - 1) : 0; }
};

RunResult simulate(const RunSetup& setup);
// The bound for a workload at a utilisation, 0 where none is known.
double bound_of(const Workload& workload, double utilisation, std::uint32_t segment_blocks);

}  // namespace varve::bench
