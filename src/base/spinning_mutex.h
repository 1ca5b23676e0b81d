// A std::shared_mutex that is tried for a few microseconds before the caller is put to sleep: what it guards here is held
// for that long, while sleeping and being woken takes several times as long and a system call of each side.
#pragma once

#include <shared_mutex>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace varve {

// As std::shared_mutex.
class SpinningMutex {
 public:
  void lock() {
    for (int i = 0; i < kTries; ++i, pause())
      if (mutex_.try_lock()) return;
    mutex_.lock();
  }
  bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

  void lock_shared() {
    for (int i = 0; i < kTries; ++i, pause())
      if (mutex_.try_lock_shared()) return;
    mutex_.lock_shared();
  }
  bool try_lock_shared() { return mutex_.try_lock_shared(); }
  void unlock_shared() { mutex_.unlock_shared(); }

 private:
  static constexpr int kTries = 100;  // of 40 to 140 cycles
  static void pause() {
#if defined(__x86_64__) || defined(__i386__)
    _mm_pause();
#elif defined(__aarch64__)
    asm volatile("isb");
#endif
  }

  std::shared_mutex mutex_;
};

}  // namespace varve
