// A clock that stands still until a test moves it: every timestamp is known beforehand.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace varve::test {

class ManualClock : public Clock {
 public:
  static constexpr std::int64_t kStart = 1'700'000'000LL * 1'000'000'000LL;

  Timestamp now() override {
    const std::int64_t ns = kStart + elapsed_ns_.load() + set_ahead_ns_.load();
    return {ns / 1'000'000'000, static_cast<std::uint32_t>(ns % 1'000'000'000)};
  }
  std::uint64_t monotonic_ns() override { return static_cast<std::uint64_t>(elapsed_ns_.load()) + 1'000'000'000; }

  void advance(std::int64_t ns) { elapsed_ns_ += ns; }
  void set_wall(std::int64_t ahead_ns) { set_ahead_ns_ = ahead_ns; }  // only what time it says
  void set_elapsed(std::int64_t ns) { elapsed_ns_ = ns; }
  std::int64_t elapsed() const { return elapsed_ns_; }

 private:
  std::atomic<std::int64_t> elapsed_ns_{0}, set_ahead_ns_{0};
};

}  // namespace varve::test
