// Waiting for a fast device without going to sleep: on an idle CPU, and more so in a virtual machine, waking up takes
// about as long as a short request of a fast disk. Gives up quickly where the device is slower than that.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "base/cpu_pause.h"

namespace varve::io {

// Belongs to one thread.
class Spinner {
 public:
  // Turns until ready() or for as long as it is worth it. True: ready.
  template <class Ready>
  bool spin(Ready ready) {
    if (rest_ > 0) {
      --rest_;
      return false;
    }
    const std::uint64_t end = Clock::system().monotonic_ns() + kLongestNs;
    do {
      for (int i = 0; i < 64; ++i) {
        if (ready()) return succeeded();
        cpu_pause();
      }
    } while (Clock::system().monotonic_ns() < end);
    return failed();
  }

 private:
  static constexpr std::uint64_t kLongestNs = 300'000;
  static constexpr unsigned kPatience = 8;     // failures in a row before the device counts as slow
  static constexpr unsigned kLongRest = 4096;  // waits between two attempts on a slow device

  bool succeeded() {
    failures_ = 0;
    next_rest_ = 64;
    return true;
  }

  bool failed() {
    if (++failures_ < kPatience) return false;
    rest_ = next_rest_;
    next_rest_ = next_rest_ < kLongRest ? 2 * next_rest_ : kLongRest;
    return false;
  }

  unsigned failures_ = 0;
  unsigned rest_ = 0;
  unsigned next_rest_ = 64;
};

}  // namespace varve::io
