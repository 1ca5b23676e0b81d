// What writing costs on this device, measured on the cleaner's own writes: few blocks at a time, here and there, against
// many in a row. It decides between filling holes and copying (Matthews et al. 1997).
#pragma once

#include <cstdint>
#include <mutex>

#include "base/types.h"

namespace varve::log {

// Thread-safe.
class WriteCost {
 public:
  static constexpr std::uint32_t kFew = 2, kMany = 32;  // blocks of one write
  static constexpr double kRotationalFactor = 100, kUsualFactor = 4;  // before there is anything to go by

  explicit WriteCost(bool rotational) : assumed_(rotational ? kRotationalFactor : kUsualFactor) {}

  // A write of so many blocks took so long, nothing else of the caller's in flight.
  void observe(BlockAddr start, std::uint32_t blocks, std::uint64_t ns);
  // Time for a segment's worth of blocks written few at a time, over that in a row; at least 1.
  double factor() const;
  bool is_measured() const;

 private:
  static constexpr unsigned kLeastSamples = 8;
  struct Mean {  // moving, per block
    double ns = 0;
    std::uint64_t samples = 0;
    void add(double value);
  };
  const double assumed_;
  mutable std::mutex mutex_;
  Mean scattered_, sequential_;
  BlockAddr end_;  // of the last write
};

}  // namespace varve::log
