// What operations waited for, how often and for how long: where latency comes from.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

#include "base/clock.h"

namespace varve::operation {

enum class WaitCause : std::uint8_t {
  node,      // a tree node from the device
  data,      // blocks of a file from the device
  durable,   // a flush
  memory,    // a checkpoint, because changes fill their memory
  space,     // a checkpoint, because clean segments run short
  in_flight  // writes that are on their way
};
inline constexpr std::size_t kWaitCauses = 6;

struct WaitCount {
  std::uint64_t times = 0, total_ns = 0, longest_ns = 0;
};
using WaitCounts = std::array<WaitCount, kWaitCauses>;  // by cause

// Thread-safe; since the mount.
class WaitTimes {
 public:
  explicit WaitTimes(Clock& clock) : clock_(clock) {}
  std::uint64_t now_ns() { return clock_.monotonic_ns(); }
  void add(WaitCause cause, std::uint64_t since_ns) {
    const std::uint64_t ns = now_ns() - since_ns;
    Sum& sum = sums_[static_cast<std::size_t>(cause)];
    sum.times.fetch_add(1, std::memory_order_relaxed);
    sum.total_ns.fetch_add(ns, std::memory_order_relaxed);
    std::uint64_t longest = sum.longest_ns.load(std::memory_order_relaxed);
    while (ns > longest && !sum.longest_ns.compare_exchange_weak(longest, ns, std::memory_order_relaxed)) {
    }
  }
  WaitCounts counts() const {
    WaitCounts counts;
    std::transform(sums_.begin(), sums_.end(), counts.begin(),
                   [](const Sum& sum) { return WaitCount{sum.times, sum.total_ns, sum.longest_ns}; });
    return counts;
  }

 private:
  struct alignas(64) Sum {
    std::atomic<std::uint64_t> times{0}, total_ns{0}, longest_ns{0};
  };
  Clock& clock_;
  std::array<Sum, kWaitCauses> sums_;
};

}  // namespace varve::operation
