// Notices that somebody has set the wall clock: it no longer goes along with the clock that nobody sets.
#pragma once

#include <cstdint>

#include "base/clock.h"

namespace varve {

class ClockWatch {
 public:
  static constexpr std::int64_t kLeastSeconds = 5;  // what is less nobody needs to know; clocks that are kept right move by less

  explicit ClockWatch(Clock& clock) : clock_(clock), ahead_seconds_(ahead_seconds()) {}

  // By how many seconds it was set forward (positive) or back since the last call that found something. 0: it was not. One thread at a
  // time.
  std::int64_t jump();

 private:
  std::int64_t ahead_seconds();

  Clock& clock_;
  std::int64_t ahead_seconds_;  // of the clock that nobody sets
};

}  // namespace varve
