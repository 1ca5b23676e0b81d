// The log clock: the number of blocks that users have written. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/gate.h"

namespace varve::segments {

class LogClock {
 public:
  // `unit`: clocks are kept in extents in multiples of it.
  LogClock(std::uint64_t value, std::uint64_t unit) : unit_(unit), value_(value) {}

  std::uint64_t now() const { return value_.load(std::memory_order_relaxed); }
  std::uint64_t advance(std::uint64_t blocks) { return value_.fetch_add(blocks) + blocks; }
  void set(std::uint64_t value) { value_ = value; }  // before there are other threads
  std::uint32_t units(std::uint64_t clock) const { return static_cast<std::uint32_t>(clock / unit_); }
  std::uint64_t wide_units(std::uint64_t clock) const { return clock / unit_; }  // not modulo anything
  // What is written from now on has this number of units, or more; all before has less.
  std::uint64_t begin_unit() REQUIRES(the_gate) {
    const std::uint64_t next = now() / unit_ + 1;
    value_ = next * unit_ - 1;
    return next;
  }

 private:
  const std::uint64_t unit_;
  std::atomic<std::uint64_t> value_;
};

}  // namespace varve::segments
