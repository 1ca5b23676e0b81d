#include "base/clock_watch.h"

#include <utility>

namespace varve {

std::uint64_t ageing_ns(Clock& clock) { return &clock == &Clock::system() ? boot_time_ns() : clock.monotonic_ns(); }

std::int64_t ClockWatch::ahead_seconds() {
  return clock_.now().seconds - static_cast<std::int64_t>(ageing_ns(clock_) / 1'000'000'000);
}

std::int64_t ClockWatch::jump() {
  const std::int64_t now = ahead_seconds(), change = now - ahead_seconds_;
  if (change < kLeastSeconds && change > -kLeastSeconds) return 0;
  ahead_seconds_ = now;
  return change;
}

}  // namespace varve
