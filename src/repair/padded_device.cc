#include "repair/padded_device.h"

#include <cerrno>

#include "io/forwarding_queue.h"

namespace varve::repair {

class PaddedQueue : public io::ForwardingQueue {
 public:
  explicit PaddedQueue(PaddedDevice& device) : ForwardingQueue(device.below_.make_queue()), device_(device) {}

  void submit(io::IoRequest& request) override {
    if (request.kind != io::IoKind::read) return finish_later(request, EROFS);
    if (request.offset + request.length > device_.below_.geometry().size_bytes) return finish_later(request, EIO);
    ForwardingQueue::submit(request);
  }

 private:
  PaddedDevice& device_;
};

std::unique_ptr<io::IoQueue> PaddedDevice::make_queue() { return std::make_unique<PaddedQueue>(*this); }

}  // namespace varve::repair
