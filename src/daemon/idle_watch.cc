#include "daemon/idle_watch.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/clock.h"

namespace varve::daemon {

namespace {
constexpr auto kStep = std::chrono::milliseconds(20);  // a thread that waits is seen after two or three
}  // namespace

IdleWatch::IdleWatch() : spare_(Clock::system().monotonic_ns()), thread_([this] { run(); }) {}

IdleWatch::~IdleWatch() {
  {
    const Lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void IdleWatch::add(std::shared_ptr<PlacedThread> thread) {
  const Lock lock(mutex_);
  threads_.push_back(std::move(thread));
}

void IdleWatch::remove(const PlacedThread* thread) {
  const Lock lock(mutex_);
  std::erase_if(threads_, [thread](const auto& one) { return one.get() == thread; });
}

bool IdleWatch::may_be_idle(std::uint64_t now) {
  const Lock lock(mutex_);
  return spare_.was_left(now);
}

void IdleWatch::look_after_idle() {
  { const Lock lock(mutex_); }  // so that it does not fall between its look and its sleep
  changed_.notify_all();
}

bool IdleWatch::any_idle() const {
  return std::any_of(threads_.begin(), threads_.end(), [](const auto& thread) { return thread->is_idle(); });
}

void IdleWatch::run() {
  ::pthread_setname_np(::pthread_self(), "varve-idle");
  Lock lock(mutex_);
  while (!stopping_) {
    changed_.wait(lock, [this]() REQUIRES(mutex_) { return stopping_ || any_idle(); });
    if (changed_.wait_for(lock, kStep, [this]() REQUIRES(mutex_) { return stopping_; })) return;
    for (const auto& thread : threads_)
      if (thread->is_idle() && thread->starves()) thread->become_normal();
  }
}

}  // namespace varve::daemon
