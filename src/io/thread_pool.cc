#include "io/thread_pool.h"

#include <pthread.h>

#include <csignal>
#include <exception>

#include "io/fd_device.h"

namespace varve::io {

namespace {

// Signals are for the threads of the program, never for the pool's: they start with all of them blocked.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

}  // namespace

ThreadPool::~ThreadPool() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool ThreadPool::add(std::span<IoRequest* const> requests, CompletionSink& sink) {
  const Lock lock(mutex_);  // until the end: what is taken back, no thread has seen
  const std::size_t before = jobs_.size();
  try {
    for (IoRequest* request : requests) jobs_.push_back(Job{request, &sink});
    start_threads();
  } catch (const std::exception&) {
    jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(before), jobs_.end());
    return false;
  }
  if (requests.size() == 1) {
    changed_.notify_one();
  } else {
    changed_.notify_all();
  }
  return true;
}

void ThreadPool::start_threads() {
  const SignalsBlocked guard;
  for (std::size_t free = idle_; free < jobs_.size() && threads_.size() < max_threads_; ++free) {
    try {
      threads_.emplace_back([this] { work(); });
    } catch (const std::exception&) {
      if (threads_.empty()) throw;
      break;  // fewer threads do
    }
  }
}

void ThreadPool::work() {
  pthread_setname_np(pthread_self(), "varve-io");
  Lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || !jobs_.empty(); });
    --idle_;
    if (jobs_.empty()) return;
    const Job job = jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    job.request->error = device_.execute(*job.request);
    job.sink->finished(*job.request);
    lock.lock();
  }
}

}  // namespace varve::io
