// A measurement of what the device takes, and how far it is to be believed. A thread that has to wait for a CPU hears late of what is
// done. So a measurement weighs less the longer it had to.
#pragma once

#include <algorithm>
#include <cstdint>

namespace varve::device {

struct DeviceSpan {
  std::uint64_t ns = 0;  // of the device
  double weight = 1;     // from kLeastWeight to 1

  static constexpr double kLeastWeight = 1.0 / 16;

  DeviceSpan(std::uint64_t its_ns = 0, double its_weight = 1) : ns(its_ns), weight(its_weight) {}  // NOLINT: a time is one
  // Threads waited for a CPU so long meanwhile: all of that may be none of the device's.
  static DeviceSpan on_host(std::uint64_t ns, std::uint64_t waited_ns) {
    const double late = ns ? static_cast<double>(waited_ns) / static_cast<double>(ns) : 0;
    return {ns, std::max(1 - late, kLeastWeight)};
  }
};

}  // namespace varve::device
