// Measures how long the device takes for requests of one thread. The time of the host is not in it, nor is that of others' requests.
#pragma once

#include <cstdint>

#include "device/device_span.h"
#include "device/io_context.h"

namespace varve::device {

// Used by one thread. Its requests are counted apart as long as this lives (IoContext::count_apart).
class DeviceTimer {
 public:
  explicit DeviceTimer(IoContext& io);

  DeviceSpan span() const;  // until now

 private:
  IoContext& io_;
  const io::TraceDevice::Apart apart_;
  const std::uint64_t began_ns_, waited_ns_;
};

}  // namespace varve::device
