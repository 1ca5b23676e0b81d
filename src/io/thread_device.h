// The fallback where io_uring is forbidden or missing: blocking system calls in a pool of threads per device.
#pragma once

#include <memory>

#include "io/fd_device.h"

namespace varve::io {

class ThreadDevice : public FdDevice {
 public:
  explicit ThreadDevice(OpenFile file) : FdDevice(std::move(file), "threads") {}

  std::unique_ptr<IoQueue> make_queue() override;
};

// A queue served by the device's pool, whatever else the device uses.
std::unique_ptr<IoQueue> make_thread_queue(FdDevice& device);

}  // namespace varve::io
