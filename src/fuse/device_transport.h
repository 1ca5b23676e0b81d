// The classic transport: read(2) and writev(2) on /dev/fuse, or on anything that keeps message boundaries (tests use a
// SOCK_SEQPACKET pair).
#pragma once

#include "fuse/transport.h"

namespace varve::fuse {

class DeviceTransport : public Transport {
 public:
  explicit DeviceTransport(int fd);  // makes it non-blocking; does not close it
  std::unique_ptr<Port> open(io::IoQueue& queue, BufferPool& pool, MessageSink& sink) override;
  int reply(std::span<const iovec> parts) override;

 private:
  int fd_;
};

}  // namespace varve::fuse
