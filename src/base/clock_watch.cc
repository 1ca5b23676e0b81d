#include "base/clock_watch.h"

namespace varve {

std::int64_t ClockWatch::ahead_seconds() {
  return clock_.now().seconds - static_cast<std::int64_t>(clock_.ageing_ns() / 1'000'000'000);
}

std::int64_t ClockWatch::jump() {
  const std::int64_t now = ahead_seconds(), change = now - ahead_seconds_;
  if (change < kLeastSeconds && change > -kLeastSeconds) return 0;
  ahead_seconds_ = now;
  return change;
}

}  // namespace varve
