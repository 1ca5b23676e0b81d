// An open file of the host, which is closed with its owner.
#pragma once

#include <unistd.h>

#include <utility>

namespace varve {

class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { close(); }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  // Some filesystems say only now that they have not taken everything: false, and errno.
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

}  // namespace varve
