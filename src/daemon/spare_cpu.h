// Whether other programs leave any time of the CPUs, by the kernel's counts (proc_stat(5)).
#pragma once

#include <cstdint>

#include "base/descriptor.h"

namespace varve::daemon {

// Not thread-safe.
class SpareCpu {
 public:
  // It looks for the first time at `now`, in ns of the monotonic clock.
  explicit SpareCpu(std::uint64_t now, const char* file = "/proc/stat");

  // Was a quarter of a CPU or more idle since the look before? It looks again after a tenth of a second at the earliest, as the counts are
  // coarse, and answers as before until then. True where the kernel does not tell.
  bool was_left(std::uint64_t now);

 private:
  std::uint64_t idle_ticks() const;  // of all CPUs, so far; 0: not known

  const Descriptor file_;
  std::uint64_t last_ns_, last_ticks_;
  bool was_left_ = true;
};

}  // namespace varve::daemon
