// How long requests took, from the histograms of a status (`mount.latencies`).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"

namespace varve::tool {

struct LatencyHistogram {
  std::string operation;
  std::uint64_t times = 0, total_us = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> buckets;  // end in µs (~0: there is none), how many; ends ascend

  // The end of the bucket that the share (0 to 1) falls into: at most a quarter too much. In µs.
  std::uint64_t quantile(double share) const;
};

// What has come between two statuses; `before` may be null. Operations without any are left out, the most frequent come first.
std::vector<LatencyHistogram> latencies_between(const Json& before, const Json& now);
// A table of the most frequent operations; empty where there is nothing.
std::string latency_lines(const Json& before, const Json& now);
std::string microseconds_text(std::uint64_t us);  // "850 µs", "1.2 ms", "3.0 s"

}  // namespace varve::tool
