// A message as it is read from /dev/fuse: in one piece.
#pragma once

#include <sys/uio.h>

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "fuse/transport/arrivals.h"
#include "fuse/transport/buffer_pool.h"
#include "fuse/transport/message.h"

namespace varve::fuse {

// Answers by writev(2). Returns 0 or an errno; that nobody waits for it any more is no error.
int write_answer(int fd, std::span<const iovec> parts);

class DeviceMessage : public Message {
 public:
  // release() puts it into `free`, which has room for it.
  DeviceMessage(int fd, const std::shared_ptr<BufferPool>& pool, std::vector<DeviceMessage*>& free, Arrivals& arrivals)
      : fd_(fd), pool_(pool), free_(free), arrivals_(arrivals) {}

  // `bytes` stand in `storage`, which is moved away if they are too many to copy. False: they are fewer than they say.
  bool take(std::span<const std::byte> bytes, Lease& storage);

  log::PayloadBufferPtr keep_payload() override;
  std::span<std::byte> reply_room(std::size_t bytes) override;
  int reply(int error, std::span<const std::byte> first, std::span<const std::byte> second) override;
  void release() override;

 private:
  static constexpr std::size_t kInlineBytes = 1024;
  // A few dozen that wait for room would otherwise take all the memory for messages, and nobody would be served any more.
  static constexpr std::size_t kCopiedBytes = 16u << 10;
  static constexpr std::size_t kKeptBytes = 512u << 10;

  const int fd_;
  const std::shared_ptr<BufferPool>& pool_;
  std::vector<DeviceMessage*>& free_;
  Arrivals& arrivals_;
  std::optional<unsigned> data_;  // as arrivals_ counts it
  Lease storage_, reply_room_;
  alignas(8) std::array<std::byte, kInlineBytes> inline_;
};

}  // namespace varve::fuse
