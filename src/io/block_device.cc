#include "io/block_device.h"

#include <cstring>

#include <fmt/format.h>

#include "base/buffer.h"
#include "io/lent_reactor.h"
#include "io/transfer.h"

namespace varve::io {

namespace {

bool usable_directly(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % kBlockSize == 0; }

}  // namespace

Status BlockDevice::set_length(std::uint64_t) {
  return Error(Errc::unsupported, fmt::format("{}: is no image file, its length cannot be changed from here", name()));
}

int BlockDevice::execute(IoRequest& request) {
  const LentReactor reactor;
  bool finished = false;
  std::function<void(IoRequest&)> before = std::move(request.done);
  request.done = [&finished](IoRequest&) { finished = true; };
  submit(*reactor, request);
  while (!finished) reactor->wait(-1);
  request.done = std::move(before);
  return request.error;
}

// The conveniences take any buffer address: one that direct I/O cannot use goes through an aligned copy.
Status BlockDevice::read(std::uint64_t offset, std::span<std::byte> out) {
  AlignedBuffer copy;
  if (!usable_directly(out.data())) copy = AlignedBuffer(out.size());
  IoRequest request;
  request.kind = IoKind::read;
  request.offset = offset;
  request.add(copy ? copy.data() : out.data(), out.size());
  request.error = execute(request);
  if (request.error == 0 && copy) std::memcpy(out.data(), copy.data(), out.size());
  return outcome_of(*this, request);
}

Status BlockDevice::write(std::uint64_t offset, std::span<const std::byte> data) {
  AlignedBuffer copy;
  if (!usable_directly(data.data())) {
    copy = AlignedBuffer(data.size());
    std::memcpy(copy.data(), data.data(), data.size());
  }
  IoRequest request;
  request.kind = IoKind::write;
  request.offset = offset;
  request.add(copy ? copy.data() : const_cast<std::byte*>(data.data()), data.size());
  request.error = execute(request);
  return outcome_of(*this, request);
}

Status BlockDevice::flush() {
  IoRequest request;
  request.kind = IoKind::flush;
  request.error = execute(request);
  return outcome_of(*this, request);
}

Status BlockDevice::discard(std::uint64_t offset, std::uint64_t length) {
  IoRequest request;
  request.kind = IoKind::discard;
  request.offset = offset;
  request.length = length;
  request.error = execute(request);
  return outcome_of(*this, request);
}

}  // namespace varve::io
