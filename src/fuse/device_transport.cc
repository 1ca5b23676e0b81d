#include "fuse/device_transport.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "fuse/protocol.h"

namespace varve::fuse {

namespace {

constexpr int kBatch = 64;  // messages before completions of the queue get their turn
constexpr std::size_t kMessageOffset = BufferPool::kPage - kWriteHeaderBytes;

class DevicePort : public Port {
 public:
  DevicePort(int fd, io::IoQueue& queue, BufferPool& pool, MessageSink& sink)
      : fd_(fd), queue_(queue), pool_(pool), sink_(sink) {
    resume();
  }
  ~DevicePort() override { pause(); }

  void pause() override {
    if (watching_) queue_.unwatch(fd_);
    watching_ = false;
  }

  void resume() override {
    if (watching_ || ended_) return;
    watching_ = true;
    queue_.watch(fd_, [this] { drain(); });
  }

 private:
  void drain() {
    for (int i = 0; i < kBatch && watching_; ++i)
      if (!receive()) return;
  }

  // False when there is nothing more to read now.
  bool receive() {
    if (!buffer_) buffer_ = pool_.take(BufferPool::kMaxBytes);
    std::byte* const message = buffer_.data() + kMessageOffset;
    const ssize_t got = ::read(fd_, message, buffer_.size() - kMessageOffset);
    if (got > 0) {
      sink_.receive({message, static_cast<std::size_t>(got)}, buffer_);
      return true;
    }
    if (got < 0 && (errno == EINTR || errno == ENOENT)) return true;  // ENOENT: given up before it was read
    if (got < 0 && errno == EAGAIN) return false;
    end(got == 0 || errno == ENODEV ? 0 : errno);
    return false;
  }

  void end(int error) {
    pause();
    ended_ = true;
    sink_.disconnected(error);
  }

  const int fd_;
  io::IoQueue& queue_;
  BufferPool& pool_;
  MessageSink& sink_;
  Lease buffer_;  // what the next message is read into
  bool watching_ = false;
  bool ended_ = false;
};

}  // namespace

DeviceTransport::DeviceTransport(int fd) : fd_(fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  ::fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

std::unique_ptr<Port> DeviceTransport::open(io::IoQueue& queue, BufferPool& pool, MessageSink& sink) {
  return std::make_unique<DevicePort>(fd_, queue, pool, sink);
}

int DeviceTransport::reply(std::span<const iovec> parts) {
  for (;;) {
    if (::writev(fd_, parts.data(), static_cast<int>(parts.size())) >= 0) return 0;
    if (errno == ENOENT || errno == ENODEV || errno == EPIPE) return 0;
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
}

}  // namespace varve::fuse
