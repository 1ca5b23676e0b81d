#include "base/wakeable_thread.h"

#include <pthread.h>

#include <utility>

namespace varve {

void WakeableThread::start(const char* name, std::function<void()> run) {
  thread_ = std::thread([name, run = std::move(run)] {
    ::pthread_setname_np(::pthread_self(), name);
    run();
  });
}

void WakeableThread::stop() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void WakeableThread::wake() {
  {
    const Lock lock(mutex_);
    woken_ = true;
  }
  changed_.notify_all();
}

bool WakeableThread::sleep(std::optional<Time> longest) {
  Lock lock(mutex_);
  const auto is_over = [this]() REQUIRES(mutex_) { return stopping_ || woken_; };
  if (longest) changed_.wait_for(lock, *longest, is_over);
  else changed_.wait(lock, is_over);
  woken_ = false;
  return !stopping_;
}

bool WakeableThread::rest(Time time) {
  Lock lock(mutex_);
  return !changed_.wait_for(lock, time, [this]() REQUIRES(mutex_) { return stopping_; });
}

bool WakeableThread::is_wanted() const {
  const Lock lock(mutex_);
  return stopping_ || woken_;
}

bool WakeableThread::is_stopping() const {
  const Lock lock(mutex_);
  return stopping_;
}

}  // namespace varve
