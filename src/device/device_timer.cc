#include "device/device_timer.h"

namespace varve::device {

DeviceTimer::DeviceTimer(IoContext& io)
    : io_(io), apart_(io.count_apart()), began_ns_(io.time_apart().ns()), waited_ns_(io.cpu_wait_of_thread_ns()) {}

DeviceSpan DeviceTimer::span() const {
  return DeviceSpan::on_host(io_.time_apart().ns() - began_ns_, io_.cpu_wait_of_thread_ns() - waited_ns_);
}

}  // namespace varve::device
