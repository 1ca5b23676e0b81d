// What policies are told about a segment. All times are on the log clock: blocks that users have written. It stands still
// while nobody writes, so that an idle disk does not age.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace varve::cleaner {

struct SegmentFacts {
  SegmentId id;
  std::uint32_t live = 0;     // blocks that live in it
  std::uint32_t blocks = 0;   // that it holds in all
  std::uint8_t group = 0;     // temperature group that filled it
  std::uint64_t age = 0;      // since its youngest live block was written by a user
  std::uint64_t sealed = 0;   // since it was filled
  std::uint64_t opened = 0;   // since its first block was handed out
  double mean_age = 0;        // mean over its live blocks, since each was written by a user
  double rate_sum = 0;        // over its live blocks: rewrites per block of log clock as estimated; 0: nothing is known
  bool holds_nodes = false;   // tree nodes and nothing else
  double sampled_age = 0;     // mean age of a sample of what was written to it (segments/segment_samples.h); 0: nothing is known

  double utilisation() const { return blocks ? static_cast<double>(live) / blocks : 1.0; }
  double garbage() const { return 1.0 - utilisation(); }
  std::uint32_t dead() const { return blocks - std::min(live, blocks); }
};

}  // namespace varve::cleaner
