// A thread that sleeps until it is woken, some time has passed, or it is to stop.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <thread>

#include "base/mutex.h"

namespace varve {

class WakeableThread {
 public:
  using Time = std::chrono::nanoseconds;

  WakeableThread() = default;
  ~WakeableThread() { stop(); }
  WakeableThread(const WakeableThread&) = delete;
  WakeableThread& operator=(const WakeableThread&) = delete;

  // `name`: as in a list of threads. std::system_error: no thread is to be had.
  void start(const char* name, std::function<void()> run);
  void stop();  // asks it to end, and waits for that
  void wake();  // ends its sleep, or else the next one. Any thread

  // --- by the thread itself: false means that it is to stop ---
  bool sleep(std::optional<Time> longest = {});  // until somebody wakes it
  bool rest(Time time);                          // even if it is woken; that counts for the next sleep
  bool is_wanted() const;                        // somebody has woken it since its last sleep, or it is to stop
  bool is_stopping() const;

 private:
  mutable Mutex mutex_{LockRank::any};
  Condition changed_;
  bool stopping_ GUARDED_BY(mutex_) = false, woken_ GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace varve
