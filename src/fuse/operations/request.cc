#include "fuse/operations/request.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "fuse/operations/opcodes.h"

namespace varve::fuse {

bool Request::begin(std::span<const std::byte> message, Lease& storage) {
  MEMORY_INVARIANT(finished_);
  if (message.size() < sizeof header_) return false;
  std::memcpy(&header_, message.data(), sizeof header_);
  if (header_.len < sizeof header_ || header_.len > message.size()) return false;
  message = message.first(header_.len);
  if (message.size() <= kInlineBytes) {
    std::memcpy(inline_message_.data(), message.data(), message.size());
    message = {inline_message_.data(), message.size()};
  } else {
    message_storage_ = std::move(storage);
  }
  body_ = MessageReader(message.subspan(sizeof header_));
  umask_ = 0;
  finished_ = false;
  return true;
}

void Request::recycle() {
  MEMORY_INVARIANT(finished_);
  operation_ = nullptr;
  for (auto& operation : operations_) operation.reset();
  message_storage_.reset();
  reply_storage_.reset();
}

void Request::start_operation() {
  auto free = operations_.begin();
  while (free != operations_.end() && *free) ++free;
  MEMORY_INVARIANT(free != operations_.end());
  free->emplace(fs().engine(), fs::Caller{header_.uid, header_.gid, header_.pid, umask_}, &host_.reactor);
  operation_ = &**free;
}

log::PayloadBufferPtr Request::keep_message() {
  // A buffer is of one size: small messages would hold far more memory than they need.
  if (!message_storage_ || header_.len < kKeptBytes) return {};
  return new LeasedPayload(host_.pool, std::move(message_storage_));
}

std::span<std::byte> Request::reply_space(std::size_t bytes) {
  INVARIANT(!finished_);
  reply_storage_.reset();
  reply_storage_ = host_.pool->take(std::max<std::size_t>(bytes, 1));
  return {reply_storage_.data(), bytes};
}

void Request::end() {
  finished_ = true;
  host_.finished.push_back(this);
}

void Request::reply_error(const Error& error) {
  session().errors().note(error, opcode_name(header_.opcode), node());
  reply_errno(error.to_errno());
}

void Request::send(int error, std::span<const std::byte> first, std::span<const std::byte> second) {
  MEMORY_INVARIANT(!finished_);
  fuse_out_header header{};
  header.len = static_cast<std::uint32_t>(sizeof header + first.size() + second.size());
  header.error = error;
  header.unique = header_.unique;
  std::array<iovec, 3> parts;
  std::size_t count = 0;
  parts[count++] = {&header, sizeof header};
  for (const auto part : {first, second})
    if (!part.empty()) parts[count++] = {const_cast<std::byte*>(part.data()), part.size()};
  // The kernel takes a while to end the writeback of so many pages: what has been started meanwhile should be under way.
  if (header_.len >= kKeptBytes) host_.reactor.kick();
  end();
  if (const int failure = session().transport().reply({parts.data(), count}))
    spdlog::error("reply to {} of inode {} refused: {}", opcode_name(header_.opcode), node(), std::strerror(failure));
}

}  // namespace varve::fuse
