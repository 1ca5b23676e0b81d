// A std::shared_mutex that is tried for a few microseconds before the caller is put to sleep: what it guards here is held
// for that long, while sleeping and being woken takes several times as long and a system call of each side.
#pragma once

#include <shared_mutex>

#include "base/cpu_pause.h"

namespace varve {

// As std::shared_mutex.
class SpinningMutex {
 public:
  void lock() {
    if (!spin([this] { return mutex_.try_lock(); })) mutex_.lock();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

  void lock_shared() {
    if (!spin([this] { return mutex_.try_lock_shared(); })) mutex_.lock_shared();
  }
  bool try_lock_shared() { return mutex_.try_lock_shared(); }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  template <class Try>
  static bool spin(Try succeeds) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i, cpu_pause())
      if (succeeds()) return true;
    return false;
  }

  std::shared_mutex mutex_;
};

}  // namespace varve
