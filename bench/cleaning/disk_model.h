// What a small disk would take for a sequence of requests, as a model: nothing here was measured on one.
//
// A Microdrive (IBM 3K4): seeks of 2 ms to the next track and 19 ms over all, 12 ms on average; 3600 rpm; 4.3 MB/s on
// the inner tracks. Its seek time is t1 + (tF - t1)·(d/D)^p. Each request that does not begin where the last ended takes
// half a turn. There are no caches. Power while it works is taken as constant, 1.1 W: energy is proportional to time and
// ranks alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "io/trace_device.h"

namespace varve::bench {

class DiskModel {
 public:
  static constexpr double kWatts = 1.1;

  void add(const io::TraceEvent& event) {
    if (event.kind != io::IoKind::read && event.kind != io::IoKind::write) return;
    if (event.offset != head_) {
      ++seeks_;
      const double distance = std::abs(static_cast<double>(event.offset) - static_cast<double>(head_)) / kDisk;
      seconds_ += kNextTrack + (kWholeDisk - kNextTrack) * std::pow(std::min(distance, 1.0), kExponent) + kTurn / 2;
    }
    seconds_ += static_cast<double>(event.length) / kBandwidth;
    head_ = event.offset + event.length;
    (event.kind == io::IoKind::read ? read_ : written_) += event.length >> kBlockShift;
  }

  double seconds() const { return seconds_; }
  double joules() const { return seconds_ * kWatts; }
  std::uint64_t seeks() const { return seeks_; }
  std::uint64_t read() const { return read_; }        // blocks
  std::uint64_t written() const { return written_; }  // blocks

 private:
  static constexpr double kNextTrack = 0.002, kWholeDisk = 0.019, kExponent = 0.41, kTurn = 60.0 / 3600;
  static constexpr double kBandwidth = 4.3e6, kDisk = 1e9;  // bytes a second, bytes

  double seconds_ = 0;
  std::uint64_t seeks_ = 0, read_ = 0, written_ = 0, head_ = 0;
};

}  // namespace varve::bench
