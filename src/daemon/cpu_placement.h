// Where serving threads run. A CPU on which only SCHED_IDLE threads run counts as idle. So a caller that a reply wakes
// stays on its CPU instead of being moved to a halted one, which makes a round trip several times cheaper. The price is
// that such a thread starves when others want all CPUs. So it watches how long it had to wait for a CPU, and runs as a
// normal thread for a while when that was long.
#pragma once

#include <sched.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace varve::fuse {

enum class IdleThreads : std::uint8_t { automatic, on, off };

// CPUs this process may run on.
unsigned cpu_count();

// Of the calling thread; one per serving thread.
class CpuPlacement {
 public:
  // As an idle thread it is pinned to the `index`-th of the CPUs it may use.
  CpuPlacement(IdleThreads wish, unsigned index);
  CpuPlacement(const CpuPlacement&) = delete;
  CpuPlacement& operator=(const CpuPlacement&) = delete;

  // Called whenever the thread has woken up. Has somebody waited for it: for requests it had, or one that it has received now?
  void woken(bool was_waited_for);
  bool is_idle() const { return idle_; }

 private:
  void change(bool idle);
  struct Waiting {
    std::uint64_t ns = 0;     // spent runnable without a CPU
    std::uint64_t times = 0;  // put on a CPU
  };
  Waiting waiting() const;  // so far

  const unsigned index_;
  cpu_set_t allowed_{};
  bool enabled_ = false;  // changes between both
  bool idle_ = false;
  Descriptor schedstat_;
  std::uint64_t next_look_ns_ = 0;
  Waiting last_look_;
  std::uint64_t penalty_ns_ = 0;
};

}  // namespace varve::fuse
