#include "mkfs/timed_device.h"

#include <algorithm>
#include <cstring>

#include "io/batch.h"
#include "io/transfer.h"

namespace varve::mkfs {

TimedDevice::TimedDevice(io::BlockDevice& device, Clock& clock, Random& random)
    : device_(device), clock_(clock), began_ns_(clock.monotonic_ns()), bytes_(kRowBytes) {
  SeededRandom content(random.next());
  for (std::size_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = content.next();
    std::memcpy(bytes_.data() + at, &word, sizeof word);
  }
}

Result<std::uint64_t> TimedDevice::execute(io::IoRequest& request) {
  const std::uint64_t began = clock_.monotonic_ns();
  request.error = device_.execute(request);
  const std::uint64_t took = clock_.monotonic_ns() - began;
  TRY(io::outcome_of(device_, request));
  return std::max<std::uint64_t>(took, 1);
}

Result<std::uint64_t> TimedDevice::write(std::uint64_t offset, std::uint64_t bytes) {
  io::IoRequest request;
  request.kind = io::IoKind::write;
  request.durable = true;
  request.offset = offset;
  request.add(bytes_.data(), bytes);
  return execute(request);
}

Result<std::uint64_t> TimedDevice::read(std::uint64_t offset, std::uint64_t bytes) {
  AlignedBuffer memory(bytes);
  io::IoRequest request;
  request.offset = offset;
  request.add(memory.data(), bytes);
  return execute(request);
}

Result<std::uint64_t> TimedDevice::write_blocks(std::span<const std::uint64_t> offsets) {
  io::Batch batch(device_);
  for (std::size_t i = 0; i < offsets.size(); ++i)
    batch.add(io::IoKind::write, offsets[i]).add(bytes_.data() + i * kBlockSize % kRowBytes, kBlockSize);
  const std::uint64_t began = clock_.monotonic_ns();
  TRY(batch.run());
  return std::max<std::uint64_t>(clock_.monotonic_ns() - began, 1);
}

Result<std::uint64_t> TimedDevice::flush() {
  io::IoRequest request;
  request.kind = io::IoKind::flush;
  return execute(request);
}

}  // namespace varve::mkfs
