#include "device/flow.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::device {

constexpr std::uint64_t kLeastInFlight = 1u << 20;

Flow::Flow(Clock& clock, std::uint64_t most) : clock_(clock), bandwidth_(kLeastInFlight, std::max(most, kLeastInFlight)) {}

void Flow::launched(std::uint64_t bytes) {
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  bandwidth_.started(bytes, clock_.monotonic_ns());
}

void Flow::landed(std::uint64_t bytes) {
  const std::uint64_t before = bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  INVARIANT(before >= bytes);
  bandwidth_.done(bytes, clock_.monotonic_ns());
  std::vector<std::function<void()>> ready;
  {
    const Lock lock(mutex_);
    if (!is_full()) ready.swap(waiting_);
  }
  for (auto& call : ready) call();
}

void Flow::wake() {
  std::vector<std::function<void()>> ready;
  {
    const Lock lock(mutex_);
    ready.swap(waiting_);
  }
  for (auto& call : ready) call();
}

void Flow::when_room(std::function<void()> ready) {
  {
    const Lock lock(mutex_);
    if (is_full()) {
      waiting_.push_back(std::move(ready));
      return;
    }
  }
  ready();
}

}  // namespace varve::device
