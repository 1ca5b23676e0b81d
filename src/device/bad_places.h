// Which blocks of the device could not be read, or were damaged, lately. A dying medium shows itself by ever more of them. One bad block
// that a program reads again and again is one place.
#pragma once

#include <cstdint>
#include <map>

#include "base/types.h"

namespace varve::device {

// For one thread at a time.
class BadPlaces {
 public:
  static constexpr std::uint64_t kHourNs = 3'600'000'000'000, kDayNs = 24 * kHourNs;
  static constexpr std::size_t kMost = 1024;  // places that are remembered: more say nothing more

  // At `now_ns` of a monotonic clock. True: within the last day it was not known yet, and there is room to remember it.
  bool add(BlockAddr place, std::uint64_t now_ns);
  // Places that failed within the last `window_ns`, a day at most; kMost: that many or more.
  std::uint64_t within(std::uint64_t window_ns, std::uint64_t now_ns) const;

 private:
  std::map<BlockAddr, std::uint64_t> seen_;  // and when last
};

}  // namespace varve::device
