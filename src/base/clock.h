// Injected time and randomness: tests and crash sweeps replay exactly.
#pragma once

#include <compare>
#include <cstdint>

namespace varve {

inline constexpr std::uint64_t kMillisecond = 1'000'000;  // ns

struct Timestamp {
  std::int64_t seconds = 0;
  std::uint32_t nanoseconds = 0;

  auto operator<=>(const Timestamp&) const = default;
};

// Wall time is for stat only; monotonic time is for pacing and timers.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual Timestamp now() = 0;
  virtual std::uint64_t monotonic_ns() = 0;
  // Monotonic, and also passes while the machine sleeps: for ages.
  virtual std::uint64_t ageing_ns() { return monotonic_ns(); }
  // What the kernel's clock for file times has shown: from now on now() is not behind it. Thread-safe, as all of it.
  virtual void not_before(Timestamp) {}

  static Clock& system();
};

// Time that also passes while the machine sleeps, in nanoseconds (CLOCK_BOOTTIME): what other machines may have done meanwhile is judged
// by it. Any thread.
std::uint64_t boot_time_ns();

// Thread-safe source of random numbers.
class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;

  static Random& system();  // getrandom(2): epochs and generations must not be guessable
};

// Deterministic, for tests.
class SeededRandom : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;  // splitmix64 (Steele, Lea, Flood 2014)

 private:
  std::uint64_t state_;
};

}  // namespace varve
