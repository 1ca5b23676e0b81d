// Places that are written in turn, each a little further every time: is that quick, or does each turn cost a copy?
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "mkfs/timed_device.h"

namespace varve::mkfs {

struct Place {
  std::uint64_t at = 0;  // where it goes on, in bytes
};

enum class Pace : std::uint8_t { quick, slow, unclear };

const char* name_of(Pace pace);

class Turns {
 public:
  // In one call a place goes on by so much at most.
  static constexpr std::uint64_t kMostBytes = 512 << 10;

  // Writes that take longer than `slow_ns` are slow. From `until_ns` of the device's time on everything is unclear. `busy`: the machine
  // keeps some of them waiting. That makes quick ones slow and never slow ones quick, so that nearly all have to be slow.
  Turns(TimedDevice& device, std::uint64_t slow_ns, std::uint64_t until_ns, bool busy = false)
      : device_(device), slow_ns_(slow_ns), until_ns_(until_ns), busy_(busy) {}

  // The first round counts for nothing: it brings the device to where these places are open. Then all are written until three quarters of
  // a dozen writes or more are on one side, or it is unclear. So outliers are outvoted. All of them slow are enough sooner.
  Result<Pace> take(std::span<Place> places);

  bool is_late() const { return device_.elapsed_ns() >= until_ns_; }
  std::uint64_t slow_ns() const { return slow_ns_; }
  // The median of the writes that were slow in turns that were; 0: none was.
  std::uint64_t usual_slow_ns() const;

 private:
  TimedDevice& device_;
  Pace judge(std::size_t slow, std::size_t all) const;

  const std::uint64_t slow_ns_, until_ns_;
  const bool busy_;
  std::vector<std::uint64_t> slow_;
};

std::uint64_t median_of(std::vector<std::uint64_t> values);  // 0 of none

}  // namespace varve::mkfs
