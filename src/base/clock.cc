#include "base/clock.h"

#include <sys/random.h>

#include <atomic>
#include <chrono>
#include <ctime>

#include "base/mix.h"

namespace varve {

namespace {

class SystemClock : public Clock {
 public:
  // As coarse as the kernel's own file times: in writeback mode it dates what is written, and a file written after
  // another was made must not look older.
  Timestamp now() override {
    timespec ts{};
    clock_gettime(CLOCK_REALTIME_COARSE, &ts);
    return {ts.tv_sec, static_cast<std::uint32_t>(ts.tv_nsec)};
  }
  std::uint64_t monotonic_ns() override {
    timespec ts{};
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return static_cast<std::uint64_t>(ts.tv_sec) * 1'000'000'000ULL + static_cast<std::uint64_t>(ts.tv_nsec);
  }
};

class SystemRandom : public Random {
 public:
  std::uint64_t next() override {
    std::uint64_t value = 0;
    while (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
    }
    return value;
  }
};

}  // namespace

Clock& Clock::system() {
  static SystemClock clock;
  return clock;
}

Random& Random::system() {
  static SystemRandom random;
  return random;
}

std::uint64_t SeededRandom::next() {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ULL;
  return mix64(std::atomic_ref(state_).fetch_add(kStep, std::memory_order_relaxed) + kStep);
}

}  // namespace varve
