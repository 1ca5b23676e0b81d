#include "io/uring_device.h"

#include <spdlog/spdlog.h>

#include <cstring>

#include "io/thread_device.h"
#include "io/uring_queue.h"

namespace varve::io {

int UringDevice::probe() {
  Ring ring;
  return ring.open(4);
}

std::unique_ptr<IoQueue> UringDevice::make_queue() {
  Ring ring;
  if (const int error = ring.open(queue_depth())) {
    spdlog::warn("{}: no io_uring for a further queue ({}), it uses threads", name(), std::strerror(error));
    return make_thread_queue(*this);
  }
  return std::make_unique<UringQueue>(*this, std::move(ring));
}

}  // namespace varve::io
