// The normal backend: one io_uring per queue.
#pragma once

#include <atomic>
#include <memory>

#include "io/fd_device.h"

namespace varve::io {

class UringDevice : public FdDevice {
 public:
  explicit UringDevice(OpenFile file) : FdDevice(std::move(file), "io_uring") {}

  // Whether this process may use rings: 0, or the errno that says why not (EPERM, ENOSYS, ENOMEM, …).
  static int probe();

  // The thread that first submits, polls or waits owns the queue; it must also destroy it. A process that forks (to
  // become a daemon) makes its queues afterwards. Where no further ring can be had, the queue uses threads.
  std::unique_ptr<IoQueue> make_queue() override;

  // Whether the kernel discards through rings on this block device: assumed until it refuses.
  bool ring_discards() const { return ring_discards_.load(std::memory_order_relaxed); }
  void no_ring_discards() { ring_discards_.store(false, std::memory_order_relaxed); }

 private:
  std::atomic<bool> ring_discards_{true};
};

}  // namespace varve::io
