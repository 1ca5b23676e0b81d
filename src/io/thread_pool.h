// Threads that carry out requests with blocking system calls.
#pragma once

#include <deque>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "io/request.h"

namespace varve::io {

class FileDevice;

// Threads are started as work comes, up to the limit. Thread-safe. All work must be finished before destruction.
class ThreadPool {
 public:
  ThreadPool(FileDevice& device, unsigned max_threads) : device_(device), max_threads_(max_threads) {}
  ~ThreadPool();

  // Carries out a request that has begun elsewhere (Reactor::begin_elsewhere). False: there is no thread to be had for it, or
  // no memory, and it has not been taken.
  [[nodiscard]] bool add(IoRequest& request);

 private:
  void start_thread() REQUIRES(mutex_);
  void work();

  FileDevice& device_;
  const unsigned max_threads_;
  Mutex mutex_;
  Condition changed_;
  std::deque<IoRequest*> jobs_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  unsigned idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve::io
