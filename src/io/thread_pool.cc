#include "io/thread_pool.h"

#include <pthread.h>

#include <csignal>
#include <system_error>

#include "base/invariant.h"
#include "io/file_device.h"
#include "io/reactor.h"

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

bool ThreadPool::add(IoRequest& request) {
  const Lock lock(mutex_);  // until the end: what is taken back, no thread has seen
  jobs_.push_back(&request);
  try {
    if (idle_ < jobs_.size() && threads_.size() < max_threads_) start_thread();
  } catch (const std::system_error&) {
    if (threads_.empty()) jobs_.pop_back();  // else fewer threads do
    if (threads_.empty()) return false;
  }
  changed_.notify_one();
  return true;
}

void ThreadPool::start_thread() {
  INVARIANT(threads_.size() < max_threads_);
  const SignalsBlocked guard;
  threads_.emplace_back([this] { work(); });
}

void ThreadPool::work() {
  pthread_setname_np(pthread_self(), "varve-io");
  Lock lock(mutex_);
  for (;;) {
    ++idle_;
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || !jobs_.empty(); });
    MEMORY_INVARIANT(idle_ > 0);
    --idle_;
    if (jobs_.empty()) return;
    IoRequest& request = *jobs_.front();
    jobs_.pop_front();
    lock.unlock();
    MEMORY_INVARIANT(request.reactor() != nullptr);
    request.reactor()->finish_from_elsewhere(request, device_.execute_late(request));
    lock.lock();
  }
}

}  // namespace varve::io
