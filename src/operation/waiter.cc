#include "operation/waiter.h"

#include <cstring>
#include <utility>

#include "base/invariant.h"

namespace varve::operation {

void Waiter::begin(io::Reactor* reactor, std::function<void()> ready) {
  reactor_ = reactor;
  ready_ = std::move(ready);
  since_ns_ = times_.now_ns();
  INVARIANT(outstanding_.load(std::memory_order_relaxed) == 0);
  outstanding_.store(1, std::memory_order_relaxed);
  if (reactor_) reactor_->begin_wait();
  const Lock lock(mutex_);
  over_ = false;
}

void Waiter::came(std::optional<WaitCause> cause) {
  if (cause) times_.add(*cause, since_ns_);
  end_one(false);
}

// The last one may be the end of the operation, and of this with it.
void Waiter::end_one(bool inside) {
  const unsigned before = outstanding_.fetch_sub(1, std::memory_order_acq_rel);
  MEMORY_INVARIANT(before > 0);
  if (before != 1) return;
  if (!reactor_) {
    const Lock lock(mutex_);
    over_ = true;
    changed_.notify_all();
  } else if (!inside && reactor_->is_mine()) {
    tell();
  } else {
    reactor_->post([this] { tell(); });
  }
}

void Waiter::tell() {
  reactor_->end_wait();
  const auto ready = std::move(ready_);
  ready();
}

bool Waiter::is_over() const {
  const Lock lock(mutex_);
  return over_;
}

void Waiter::block() {
  Lock lock(mutex_);
  changed_.wait(lock, [this]() REQUIRES(mutex_) { return over_; });
}

}  // namespace varve::operation
