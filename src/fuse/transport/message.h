// One message of the kernel, and the way that its answer takes.
#pragma once

#include <cstddef>
#include <span>

#include "fuse/protocol/protocol.h"
#include "log/payload.h"

namespace varve::fuse {

// Belongs to the port through which it came, and with it the memory of its parts: one buffer that was read from /dev/fuse, or
// several that the kernel has filled. The sink that has received it uses it until release().
class Message {
 public:
  virtual ~Message() = default;

  const fuse_in_header& header() const { return header_; }
  // What follows the header, in one piece or in two. The payload of a WRITE is page-aligned.
  std::span<const std::byte> arguments() const { return arguments_; }
  std::span<const std::byte> payload() const { return payload_; }

  // The owner of the payload's bytes from now on, for a filesystem that goes on using them; null if they should be copied.
  virtual log::PayloadBufferPtr keep_payload() = 0;
  // Page-aligned room for the answer, until release(). Another one takes its place.
  virtual std::span<std::byte> reply_room(std::size_t bytes) = 0;
  // The one answer, by any thread: an errno (negative) or 0, and what follows it. Returns 0 or an errno; a request that the kernel
  // has given up meanwhile is no error.
  virtual int reply(int error, std::span<const std::byte> first, std::span<const std::byte> second) = 0;
  // By the port's thread, when it has been answered or needs no answer: it is not touched any more.
  virtual void release() = 0;

 protected:
  fuse_in_header header_{};
  std::span<const std::byte> arguments_, payload_;
};

}  // namespace varve::fuse
