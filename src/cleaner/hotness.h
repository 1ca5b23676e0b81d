// How hot a segment is: rewrites of one of its live blocks per block of log clock. Always above zero.
#pragma once

#include <algorithm>

#include "cleaner/segment_facts.h"

namespace varve::cleaner {

inline double hotness_of(const SegmentFacts& s) {
  const double by_age = 1.0 / std::max(s.mean_age, 1.0);
  if (s.rate_sum <= 0 || s.live == 0) return by_age;
  return std::min(s.rate_sum / s.live, by_age);
}

}  // namespace varve::cleaner
