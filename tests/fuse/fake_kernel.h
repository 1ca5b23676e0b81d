// Plays the kernel's side of a mount over a socket pair that keeps message boundaries.
#pragma once

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "fuse/protocol/protocol.h"

namespace varve::fuse {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes bytes_of(const T& value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  return Bytes(data, data + sizeof value);
}
inline Bytes bytes_of(const std::string& text) {
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  return Bytes(data, data + text.size());
}
inline Bytes name_bytes(const std::string& name) { return bytes_of(name + '\0'); }
inline Bytes operator+(Bytes left, const Bytes& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

struct Reply {
  std::uint64_t unique = 0;
  int error = 0;  // positive errno
  Bytes body;

  template <class T>
  T as(std::size_t offset = 0) const {
    T value{};
    if (body.size() >= offset + sizeof value) std::memcpy(&value, body.data() + offset, sizeof value);
    return value;
  }
};

class FakeKernel {
 public:
  FakeKernel() {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) throw std::bad_alloc();
    kernel_ = ends[0];
    daemon_ = ends[1];
    const int room = 4 << 20;
    for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof room);
    for (const int end : ends) ::setsockopt(end, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    const timeval patience{20, 0};
    ::setsockopt(kernel_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  }
  ~FakeKernel() {
    hang_up();
    ::close(daemon_);
  }
  FakeKernel(const FakeKernel&) = delete;
  FakeKernel& operator=(const FakeKernel&) = delete;

  int daemon_end() const { return daemon_; }
  // As after umount: the daemon reads an end.
  void hang_up() {
    if (kernel_ >= 0) ::close(kernel_);
    kernel_ = -1;
  }

  // Whose requests come from now on; root's, of this process, before.
  void act_as(std::uint32_t uid, std::uint32_t gid, std::uint32_t pid) {
    uid_ = uid;
    gid_ = gid;
    pid_ = pid;
  }

  std::uint64_t send(std::uint32_t opcode, std::uint64_t node, const Bytes& body) {
    fuse_in_header header{};
    header.len = static_cast<std::uint32_t>(sizeof header + body.size());
    header.opcode = opcode;
    header.unique = ++unique_;
    header.nodeid = node;
    header.uid = uid_;
    header.gid = gid_;
    header.pid = pid_;
    send_raw(bytes_of(header) + body);
    return unique_;
  }
  bool send_raw(const Bytes& message) {
    return ::send(kernel_, message.data(), message.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(message.size());
  }

  // The next reply; notifications before it are counted. Nothing after the patience of some seconds.
  std::optional<Reply> receive() {
    for (;;) {
      auto reply = receive_any();
      if (!reply || reply->unique != 0) return reply;
      ++notifications_;
    }
  }
  unsigned notifications() const { return notifications_; }
  // The next one; replies before it are dropped. Its error is the negative of its code.
  std::optional<Reply> receive_notification() {
    auto next = receive_any();
    while (next && next->unique != 0) next = receive_any();
    return next;
  }

  // One request and its reply.
  Reply call(std::uint32_t opcode, std::uint64_t node, const Bytes& body = {}) {
    const std::uint64_t unique = send(opcode, node, body);
    const auto reply = receive();
    if (!reply || reply->unique != unique) return Reply{0, -1, {}};
    return *reply;
  }

 private:
  std::optional<Reply> receive_any() {
    static thread_local Bytes message(2 << 20);  // zeros for each reply would take longer than the reply
    ssize_t got = 0;
    do got = ::recv(kernel_, message.data(), message.size(), 0);
    while (got < 0 && errno == EINTR);  // the end of a ring interrupts threads that have used one
    if (got < static_cast<ssize_t>(sizeof(fuse_out_header))) return {};
    fuse_out_header header;
    std::memcpy(&header, message.data(), sizeof header);
    if (header.len != static_cast<std::uint32_t>(got)) return {};
    return Reply{header.unique, -header.error, Bytes(message.begin() + sizeof header, message.begin() + got)};
  }

  int kernel_ = -1;
  int daemon_ = -1;
  std::uint64_t unique_ = 0;
  std::uint32_t uid_ = 0, gid_ = 0, pid_ = static_cast<std::uint32_t>(::getpid());
  unsigned notifications_ = 0;
};

}  // namespace varve::fuse
