// Mutexes that the compiler checks: clang with -Wthread-safety refuses a member with GUARDED_BY(mutex) outside its lock.
// Other compilers see std::mutex and std::shared_mutex with other names.
//
// On members: GUARDED_BY. On functions: REQUIRES (the caller holds it), EXCLUDES (the caller must not).
// Where the analysis cannot follow, a function with ASSERT_CAPABILITY says what is true there, or NO_THREAD_SAFETY_ANALYSIS stands;
// each with its reason (a test of the project looks for it).
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <shared_mutex>
#include <utility>

#include "base/cpu_pause.h"
#include "base/lock_order.h"

#if defined(__clang__)
#define VARVE_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define VARVE_THREAD_ANNOTATION(x)
#endif

#define CAPABILITY(name) VARVE_THREAD_ANNOTATION(capability(name))
#define SCOPED_CAPABILITY VARVE_THREAD_ANNOTATION(scoped_lockable)
#define GUARDED_BY(...) VARVE_THREAD_ANNOTATION(guarded_by(__VA_ARGS__))
#define PT_GUARDED_BY(...) VARVE_THREAD_ANNOTATION(pt_guarded_by(__VA_ARGS__))
#define REQUIRES(...) VARVE_THREAD_ANNOTATION(requires_capability(__VA_ARGS__))
#define REQUIRES_SHARED(...) VARVE_THREAD_ANNOTATION(requires_shared_capability(__VA_ARGS__))
#define EXCLUDES(...) VARVE_THREAD_ANNOTATION(locks_excluded(__VA_ARGS__))
#define ACQUIRE(...) VARVE_THREAD_ANNOTATION(acquire_capability(__VA_ARGS__))
#define ACQUIRE_SHARED(...) VARVE_THREAD_ANNOTATION(acquire_shared_capability(__VA_ARGS__))
#define TRY_ACQUIRE(...) VARVE_THREAD_ANNOTATION(try_acquire_capability(__VA_ARGS__))
#define TRY_ACQUIRE_SHARED(...) VARVE_THREAD_ANNOTATION(try_acquire_shared_capability(__VA_ARGS__))
#define RELEASE(...) VARVE_THREAD_ANNOTATION(release_capability(__VA_ARGS__))
#define RELEASE_SHARED(...) VARVE_THREAD_ANNOTATION(release_shared_capability(__VA_ARGS__))
#define RELEASE_GENERIC(...) VARVE_THREAD_ANNOTATION(release_generic_capability(__VA_ARGS__))
#define ASSERT_CAPABILITY(...) VARVE_THREAD_ANNOTATION(assert_capability(__VA_ARGS__))
#define ASSERT_SHARED_CAPABILITY(...) VARVE_THREAD_ANNOTATION(assert_shared_capability(__VA_ARGS__))
#define RETURN_CAPABILITY(x) VARVE_THREAD_ANNOTATION(lock_returned(x))
#define NO_THREAD_SAFETY_ANALYSIS VARVE_THREAD_ANNOTATION(no_thread_safety_analysis)

namespace varve {

class CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  explicit Mutex(LockRank rank) : place_(rank) {}

  void lock() ACQUIRE() {
    place_.wanted();
    mutex_.lock();
  }
  bool try_lock() TRY_ACQUIRE(true) {
    const bool is_mine = mutex_.try_lock();
    if (is_mine) place_.tried();
    return is_mine;
  }
  void unlock() RELEASE() {
    mutex_.unlock();
    place_.released();
  }

 private:
  friend class Lock;  // and Condition by it: std::condition_variable waits with a std::unique_lock<std::mutex> only
  std::mutex mutex_;
  [[no_unique_address]] LockPlace<kChecksLockOrder> place_{LockRank::leaf};
};

// Holds a Mutex until its end; may let go of it in between.
class SCOPED_CAPABILITY Lock {
 public:
  explicit Lock(Mutex& mutex) ACQUIRE(mutex) : place_(mutex.place_), lock_(mutex.mutex_, std::defer_lock) { take(); }
  ~Lock() RELEASE() {
    if (owns_lock()) place_.released();
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  void lock() ACQUIRE() { take(); }
  void unlock() RELEASE() {
    lock_.unlock();
    place_.released();
  }
  bool owns_lock() const { return lock_.owns_lock(); }

 private:
  friend class Condition;
  void take() {
    place_.wanted();
    lock_.lock();
  }

  const LockPlace<kChecksLockOrder>& place_;
  std::unique_lock<std::mutex> lock_;
};

// As std::condition_variable. A predicate is a function of its own: `[this]() REQUIRES(mutex_) { return stopping_; }`.
class Condition {
 public:
  void wait(Lock& lock) { condition_.wait(lock.lock_); }
  template <class Predicate>
  void wait(Lock& lock, Predicate holds) NO_THREAD_SAFETY_ANALYSIS {  // the lock is held whenever it is called
    condition_.wait(lock.lock_, std::move(holds));
  }
  template <class Rep, class Period, class Predicate>
  bool wait_for(Lock& lock, std::chrono::duration<Rep, Period> time, Predicate holds) NO_THREAD_SAFETY_ANALYSIS {  // the same
    return condition_.wait_for(lock.lock_, time, std::move(holds));
  }
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

// A std::shared_mutex that is tried for a few microseconds before the caller is put to sleep. What it guards here is held
// for that long. Sleeping and being woken takes several times as long, and a system call of each side.
class CAPABILITY("mutex") SpinningMutex {
 public:
  explicit SpinningMutex(LockRank rank) : place_(rank) {}

  void lock() ACQUIRE() {
    place_.wanted();
    if (!spin([this] { return mutex_.try_lock(); })) mutex_.lock();
  }
  bool try_lock() TRY_ACQUIRE(true) { return noted(mutex_.try_lock()); }
  void unlock() RELEASE() {
    mutex_.unlock();
    place_.released();
  }

  void lock_shared() ACQUIRE_SHARED() {
    place_.wanted();
    if (!spin([this] { return mutex_.try_lock_shared(); })) mutex_.lock_shared();
  }
  bool try_lock_shared() TRY_ACQUIRE_SHARED(true) { return noted(mutex_.try_lock_shared()); }
  void unlock_shared() RELEASE_SHARED() {
    mutex_.unlock_shared();
    place_.released();
  }

 private:
  bool noted(bool is_mine) const {
    if (is_mine) place_.tried();
    return is_mine;
  }

  template <class Try>
  static bool spin(Try succeeds) {
    constexpr int kTries = 100;
    for (int i = 0; i < kTries; ++i, cpu_pause())
      if (succeeds()) return true;
    return false;
  }

  std::shared_mutex mutex_;
  [[no_unique_address]] LockPlace<kChecksLockOrder> place_;
};

class SCOPED_CAPABILITY WriteLock {
 public:
  explicit WriteLock(SpinningMutex& mutex) ACQUIRE(mutex) : lock_(mutex) {}
  ~WriteLock() RELEASE() = default;
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

  void lock() ACQUIRE() { lock_.lock(); }
  void unlock() RELEASE() { lock_.unlock(); }

 private:
  std::unique_lock<SpinningMutex> lock_;
};

class SCOPED_CAPABILITY ReadLock {
 public:
  explicit ReadLock(SpinningMutex& mutex) ACQUIRE_SHARED(mutex) : lock_(mutex) {}
  ~ReadLock() RELEASE_GENERIC() = default;
  ReadLock(const ReadLock&) = delete;
  ReadLock& operator=(const ReadLock&) = delete;

  void unlock() RELEASE_GENERIC() { lock_.unlock(); }

 private:
  std::shared_lock<SpinningMutex> lock_;
};

}  // namespace varve
