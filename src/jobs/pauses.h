// How long the thread of background work sleeps between two looks at what is due. Pure: time is told.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace varve::jobs {

// While there is anything that is not in the trees. What is waited for is told at once, so that looking now and then is enough.
class Pauses {
 public:
  using Time = std::chrono::nanoseconds;
  static constexpr Time kShortest = std::chrono::milliseconds(20), kLongest = std::chrono::milliseconds(320);

  explicit Pauses(std::uint64_t now_ns) : last_operation_ns_(now_ns) {}

  // None: until somebody wakes it. `has_asked`: for a job that somebody has asked for, which goes on after a rest.
  std::optional<Time> next(bool has_asked, bool is_busy, bool host_full) const {
    if (has_asked && !host_full) return std::min(rest_, kLongest);
    return has_asked || is_busy ? std::optional(pause_) : std::nullopt;
  }
  // After a step of such a job: as long as it took if operations came meanwhile, which need the device.
  void rest(Time time) { rest_ = time; }
  void lengthen() { pause_ = std::min(2 * pause_, kLongest); }
  // `operations`: a number that each one changes.
  void look(std::uint64_t operations, std::uint64_t now_ns) {
    lengthen();
    if (operations == operations_) return;
    operations_ = operations;
    last_operation_ns_ = now_ns;
    pause_ = kShortest;
  }
  void forget(std::uint64_t operations) { operations_ = operations; }  // the latest were nobody's
  std::uint64_t idle_ns(std::uint64_t now_ns) const { return now_ns - std::min(now_ns, last_operation_ns_); }

 private:
  Time pause_ = kShortest, rest_{};
  std::uint64_t operations_ = 0, last_operation_ns_;
};

}  // namespace varve::jobs
