#include "log/write_cost.h"

#include <algorithm>

namespace varve::log {

// The mean of the first ones, then an exponential one over some thirty.
void WriteCost::Mean::add(double value) {
  const double weight = 1.0 / static_cast<double>(std::min<std::uint64_t>(++samples, 32));
  ns += weight * (value - ns);
}

void WriteCost::observe(BlockAddr start, std::uint32_t blocks, std::uint64_t ns) {
  if (blocks == 0) return;
  std::lock_guard lock(mutex_);
  const double per_block = static_cast<double>(ns) / blocks;
  if (blocks >= kMany) sequential_.add(per_block);
  else if (blocks <= kFew && start != end_) scattered_.add(per_block);
  end_ = start + blocks;
}

bool WriteCost::is_measured() const {
  std::lock_guard lock(mutex_);
  return scattered_.samples >= kLeastSamples && sequential_.samples >= kLeastSamples && sequential_.ns > 0;
}

double WriteCost::factor() const {
  if (!is_measured()) return assumed_;
  std::lock_guard lock(mutex_);
  return std::max(1.0, scattered_.ns / sequential_.ns);
}

}  // namespace varve::log
