// An open file of the host, which is closed with its owner.
#pragma once

#include <unistd.h>

#include <algorithm>
#include <string>
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

// A path to an open file, also to one that is only named by its descriptor (O_PATH), for calls that take no descriptor.
inline std::string way_to(int file) { return "/proc/self/fd/" + std::to_string(file); }

// Closes all descriptors from `first` on but the one that is kept.
inline void close_others(unsigned first, unsigned kept) {
  if (kept > first) ::close_range(first, kept - 1, 0);
  ::close_range(std::max(first, kept + 1), ~0U, 0);
}

}  // namespace varve
