// Threads that carry out requests with blocking system calls.
#pragma once

#include <deque>
#include <span>
#include <thread>
#include <vector>

#include "base/mutex.h"
#include "io/block_device.h"

namespace varve::io {

class FdDevice;

// Told by a pool thread that a request, with `error` set, is finished. May be destroyed as soon as the last request
// that it waits for has been reported to its owner.
class CompletionSink {
 public:
  virtual ~CompletionSink() = default;
  virtual void finished(IoRequest& request) = 0;
};

// Threads are started as work comes, up to the limit. Thread-safe. All work must be finished before destruction.
class ThreadPool {
 public:
  ThreadPool(FdDevice& device, unsigned max_threads) : device_(device), max_threads_(max_threads) {}
  ~ThreadPool();

  // False: there is not one thread to be had for them, or no memory, and none of them has been taken.
  [[nodiscard]] bool add(std::span<IoRequest* const> requests, CompletionSink& sink);

 private:
  struct Job {
    IoRequest* request;
    CompletionSink* sink;
  };

  void start_threads() REQUIRES(mutex_);
  void work();

  FdDevice& device_;
  const unsigned max_threads_;
  Mutex mutex_;
  Condition changed_;
  // Under mutex_:
  std::deque<Job> jobs_ GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ GUARDED_BY(mutex_);
  unsigned idle_ GUARDED_BY(mutex_) = 0;
  bool stopping_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve::io
