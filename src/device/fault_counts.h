// A mount counts the errors that it meets.
#pragma once

#include <cstdint>

namespace varve::device {

struct FaultCounts {
  std::uint64_t unreadable = 0;  // reads that the device failed
  std::uint64_t damaged = 0;     // reads of what was not what had been written
  std::uint64_t other = 0;       // writes and flushes that failed, and faults of the program
  std::uint64_t places_last_hour = 0, places_last_day = 0;  // different blocks of the first two kinds

  std::uint64_t all() const { return unreadable + damaged + other; }
};

}  // namespace varve::device
