// Where serving threads run. A CPU on which only SCHED_IDLE threads run counts as idle. So a caller that a reply wakes
// stays on its CPU instead of being moved to a halted one, which makes a round trip several times cheaper. The price is
// that such a thread starves when others want all CPUs. So a thread is an idle one only while it is asked for something and a CPU has
// time left, and is a normal one for a while after it had to wait long for a CPU. It sees that itself when it runs again, or the idle watch sees it before.
#pragma once

#include <cstdint>
#include <memory>

#include "daemon/idle_watch.h"
#include "daemon/placed_thread.h"

namespace varve::daemon {

enum class IdleThreads : std::uint8_t { automatic, on, off };

// CPUs this process may run on.
unsigned cpu_count();

// Of the calling thread; one per serving thread.
class CpuPlacement {
 public:
  // As an idle thread it is pinned to the `index`-th of the CPUs it may use. `watch` outlives it; without one it cannot be automatic.
  CpuPlacement(IdleThreads wish, unsigned index, IdleWatch* watch);
  ~CpuPlacement();
  CpuPlacement(const CpuPlacement&) = delete;
  CpuPlacement& operator=(const CpuPlacement&) = delete;

  // Called whenever the thread has woken up. Has somebody waited for it: for requests it had, or one that it has received now?
  void woken(bool was_waited_for);
  bool is_idle() const { return thread_->is_idle(); }
  // To be asked before each sleep: how long it may be at most, in ns; negative: for ever.
  std::int64_t rest() const;

 private:
  void become_idle(std::uint64_t now);
  void become_normal(std::uint64_t now);  // because it had to wait

  const std::shared_ptr<PlacedThread> thread_;
  IdleWatch* watch_ = nullptr;  // if it changes between both
  bool should_be_idle_ = false;
  std::uint64_t last_busy_ns_ = 0;
  std::uint64_t next_look_ns_ = 0;
  PlacedThread::Times last_look_;
  std::uint64_t penalty_ns_ = 0;
};

}  // namespace varve::daemon
