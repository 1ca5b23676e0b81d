// Policy and CPUs of one serving thread: idle and pinned to one CPU, or normal wherever there is room.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

#include "base/descriptor.h"

namespace varve::daemon {

// No lock: a thread that starves could hold it. Where both threads change it at once, it is either in the end, and the next look finds out.
class PlacedThread {
 public:
  // It stands for the calling thread, which is a normal one. As an idle one it is pinned to the `index`-th of the CPUs that it may use.
  explicit PlacedThread(unsigned index);

  // By the thread itself. `announce`, if any, is called while it is still a normal one: from then on it may starve.
  void become_idle(const std::function<void()>& announce);
  void become_normal();  // any thread
  // Also while it is about to become so.
  bool is_idle() const { return idle_.load(std::memory_order_relaxed); }

  struct Times {
    std::uint64_t run_ns = 0;
    std::uint64_t waited_ns = 0;  // runnable without a CPU; a wait counts when it ends
    std::uint64_t runs = 0;       // put on a CPU
  };
  bool has_times() const { return static_cast<bool>(schedstat_); }
  Times times() const;  // so far

  // Has it been runnable since the last call but one, without having run? For one thread, which calls it again and again, some ticks apart.
  bool starves();

 private:
  bool is_runnable() const;
  void use_cpus(const cpu_set_t& cpus);

  const pid_t id_;
  const unsigned index_;
  const Descriptor schedstat_, stat_;
  cpu_set_t allowed_{};
  std::atomic<bool> idle_{false};

  // These belong to the thread that calls starves().
  Times last_;
  bool waited_before_ = false;
};

}  // namespace varve::daemon
