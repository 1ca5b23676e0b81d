#include "fuse/transport/device_message.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace varve::fuse {

int write_answer(int fd, std::span<const iovec> parts) {
  for (;;) {
    if (::writev(fd, parts.data(), static_cast<int>(parts.size())) >= 0) return 0;
    if (errno == ENOENT || errno == ENODEV || errno == EPIPE) return 0;
    if (errno != EINTR && errno != EAGAIN) return errno;
  }
}

bool DeviceMessage::take(std::span<const std::byte> bytes, Lease& storage) {
  if (bytes.size() < sizeof header_) return false;
  std::memcpy(&header_, bytes.data(), sizeof header_);
  if (header_.len < sizeof header_ || header_.len > bytes.size()) return false;
  bytes = bytes.first(header_.len);
  const std::size_t in_page = reinterpret_cast<std::uintptr_t>(bytes.data()) % BufferPool::kPage;  // so that payload stays aligned
  if (bytes.size() <= kInlineBytes) {
    std::memcpy(inline_.data(), bytes.data(), bytes.size());
    bytes = {inline_.data(), bytes.size()};
  } else if (bytes.size() <= kCopiedBytes && (storage_ = pool_->try_take(in_page + bytes.size()))) {
    std::memcpy(storage_.data() + in_page, bytes.data(), bytes.size());
    bytes = {storage_.data() + in_page, bytes.size()};
  } else {
    storage_ = std::move(storage);
  }
  const bool has_payload = header_.opcode == FUSE_WRITE && bytes.size() > kWriteHeaderBytes;
  const std::size_t end = has_payload ? kWriteHeaderBytes : bytes.size();
  arguments_ = bytes.subspan(sizeof header_, end - sizeof header_);
  payload_ = bytes.subspan(end);
  if (header_.opcode == FUSE_WRITE) data_ = arrivals_.begin_write(payload_.size());
  if (header_.opcode == FUSE_READ) data_ = arrivals_.begin_read();
  return true;
}

log::PayloadBufferPtr DeviceMessage::keep_payload() {
  // A buffer is of one size: small messages would hold far more memory than they need.
  if (!storage_ || header_.len < kKeptBytes) return {};
  return new LeasedPayload(pool_, std::move(storage_));
}

std::span<std::byte> DeviceMessage::reply_room(std::size_t bytes) {
  reply_room_.reset();
  reply_room_ = pool_->take(std::max<std::size_t>(bytes, 1));
  return {reply_room_.data(), bytes};
}

int DeviceMessage::reply(int error, std::span<const std::byte> first, std::span<const std::byte> second) {
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof header + first.size() + second.size());
  header.error = error;
  header.unique = header_.unique;
  std::array<iovec, 3> parts;
  std::size_t count = 0;
  parts[count++] = {&header, sizeof header};
  for (const auto part : {first, second})
    if (!part.empty()) parts[count++] = {const_cast<std::byte*>(part.data()), part.size()};
  return write_answer(fd_, {parts.data(), count});
}

void DeviceMessage::release() {
  storage_.reset();
  reply_room_.reset();
  if (data_) arrivals_.end_data(*data_);
  data_.reset();
  free_.push_back(this);
}

}  // namespace varve::fuse
