#include "mkfs/timed_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/cpu_waits.h"
#include "io/batch.h"
#include "io/transfer.h"
#include "shared/interruptible.h"

namespace varve::mkfs {

HostWaits HostWaits::of_system() { return {cpu_wait_of_thread_ns, cpu_wait_of_machine_ns}; }

HostWaits HostWaits::none() {
  const auto never = [] { return std::uint64_t{0}; };
  return {never, never};
}

TimedDevice::TimedDevice(io::BlockDevice& device, Clock& clock, Random& random, HostWaits waits)
    : device_(device), clock_(clock), waits_(std::move(waits)), began_ns_(clock.monotonic_ns()), bytes_(kRowBytes) {
  SeededRandom content(random.next());
  for (std::size_t at = 0; at < bytes_.size(); at += sizeof(std::uint64_t)) {
    const std::uint64_t word = content.next();
    std::memcpy(bytes_.data() + at, &word, sizeof word);
  }
}

Result<std::uint64_t> TimedDevice::execute(io::IoRequest& request) {
  if (Interruptible::asked()) return Errc::interrupted;
  const std::uint64_t began = clock_.monotonic_ns(), waited_before = waits_.of_thread();
  request.error = device_.execute(request);
  const std::uint64_t took = clock_.monotonic_ns() - began, waited = waits_.of_thread() - waited_before;
  TRY(io::outcome_of(device_, request));
  return std::max<std::uint64_t>(took - std::min(took, waited), 1);
}

double TimedDevice::busy_share(const Moment& since) const {
  const Moment until = now();
  const auto passed = static_cast<double>(std::max<std::uint64_t>(until.elapsed_ns - since.elapsed_ns, 1));
  return std::min(static_cast<double>(until.waited_ns - since.waited_ns) / passed, 1.0);
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
  if (Interruptible::asked()) return Errc::interrupted;
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
