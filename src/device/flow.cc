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
  if (!is_full()) waiting_.wake();
}

}  // namespace varve::device
