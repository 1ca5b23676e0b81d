// Cleaning of P. Janda's fragmentation samples ("Free-space management in ScherlFS"): the whole log and a tenth of what can
// be reclaimed, by each strategy, with the reading of all files before and after. Also the block-to-inode map that the
// filesystem keeps, against making one by scanning all inodes. Time and energy by a model of a small disk (disk_model.h).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace varve::bench {

struct FragmentationSetup {
  std::vector<std::string> samples = {"standard", "coarse", "small", "medium"};
  std::vector<std::string> strategies = {"copying", "compacting", "defragmenting", "hole-plugging"};  // those there are
  std::vector<std::uint64_t> buffers = {0};  // blocks that cleaning keeps in memory; 0: as the engine does
  std::uint32_t segment_blocks = 128;
  std::uint64_t segments = 384;
  double scale = 1;         // of all amounts
  std::string record_to;    // file that each sample is written to, with its name appended
  std::string traces_to;    // device I/O of each cleaning and reading goes to this with a name appended (bench/trace)
  std::string replay_from;  // the same the other way round: nothing is drawn by lot
  std::uint64_t seed = 1;
};

// Prints its tables; returns them.
Json run_fragmentation_study(const FragmentationSetup& setup);

}  // namespace varve::bench
