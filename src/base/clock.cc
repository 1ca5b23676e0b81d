#include "base/clock.h"

#include <sys/random.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <limits>

#include "base/mix.h"

namespace varve {

namespace {

class SystemClock : public Clock {
 public:
  // As coarse as the kernel's own file times: in writeback mode it dates what is written, and a file written after
  // another was made must not look older.
  Timestamp now() override {
    const Timestamp coarse = read(CLOCK_REALTIME_COARSE), shown = from_ns(shown_ns_.load(std::memory_order_relaxed));
    return shown > coarse && shown <= read(CLOCK_REALTIME) ? shown : coarse;
  }
  // Since 6.13 the kernel's coarse time for files may be a tick ahead of the one that programs can read: not behind the
  // finest stamp that any filesystem has given (multigrain timestamps).
  void not_before(Timestamp shown) override {
    if (shown.seconds < 0 || shown.seconds >= kMostSeconds) return;  // a clock that is so far off may lag a tick
    if (shown > read(CLOCK_REALTIME_COARSE) && shown <= read(CLOCK_REALTIME))
      shown_ns_.store(shown.seconds * kSecond + shown.nanoseconds, std::memory_order_relaxed);
  }
  std::uint64_t monotonic_ns() override {
    const Timestamp time = read(CLOCK_MONOTONIC);
    return static_cast<std::uint64_t>(time.seconds * kSecond + time.nanoseconds);
  }
  std::uint64_t ageing_ns() override { return boot_time_ns(); }

 private:
  static constexpr std::int64_t kSecond = 1'000'000'000;
  static constexpr std::int64_t kMostSeconds = std::numeric_limits<std::int64_t>::max() / kSecond;  // in 2262
  static Timestamp read(clockid_t clock) {
    timespec ts{};
    clock_gettime(clock, &ts);
    return {ts.tv_sec, static_cast<std::uint32_t>(ts.tv_nsec)};  // before 1970 as well: nanoseconds count forward
  }
  static Timestamp from_ns(std::int64_t ns) { return {ns / kSecond, static_cast<std::uint32_t>(ns % kSecond)}; }
  std::atomic<std::int64_t> shown_ns_{0};
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

std::uint64_t boot_time_ns() {
  timespec now{};
  clock_gettime(CLOCK_BOOTTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

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
