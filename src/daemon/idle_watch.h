// Frees serving threads from idle priority when they starve. Such a thread cannot see that by itself, as it does not run.
#pragma once

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "daemon/placed_thread.h"
#include "daemon/spare_cpu.h"

namespace varve::daemon {

// Has a thread of its own, of normal priority. It sleeps as long as no serving thread is an idle one. Thread-safe.
class IdleWatch {
 public:
  IdleWatch();
  ~IdleWatch();

  void add(std::shared_ptr<PlacedThread> thread);
  void remove(const PlacedThread* thread);
  // Whether a thread may become idle at `now`, in ns of the monotonic clock: not where other programs leave no time of the CPUs.
  bool may_be_idle(std::uint64_t now);
  void look_after_idle();  // one is about to become so

 private:
  void run();
  bool any_idle() const REQUIRES(mutex_);

  Mutex mutex_;
  Condition changed_;
  std::vector<std::shared_ptr<PlacedThread>> threads_ GUARDED_BY(mutex_);
  SpareCpu spare_ GUARDED_BY(mutex_);
  bool stopping_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace varve::daemon
