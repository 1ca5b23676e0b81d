#include "jobs/read_probe.h"

#include <algorithm>
#include <array>

#include "base/buffer.h"

namespace varve::jobs {

namespace {

constexpr std::uint64_t kRow = 256;  // blocks: 1 MiB
constexpr std::size_t kAlone = 9, kRows = 4;

// 0: it failed, or the device is too small.
std::uint64_t timed(io::BlockDevice& device, Clock& clock, Random& random, AlignedBuffer& memory, std::uint64_t blocks) {
  const std::uint64_t all = device.geometry().blocks();
  if (all <= blocks) return 0;
  io::IoRequest request;
  request.offset = random.next() % (all - blocks) << kBlockShift;
  request.add(memory.data(), blocks << kBlockShift);
  const std::uint64_t began = clock.monotonic_ns();
  if (device.execute(request)) return 0;
  return std::max<std::uint64_t>(clock.monotonic_ns() - began, 1);
}

}  // namespace

ReadCost probe_reads(io::BlockDevice& device, Clock& clock, Random& random) {
  AlignedBuffer memory(kRow << kBlockShift);
  std::array<std::uint64_t, kAlone> alone{};
  for (std::uint64_t& ns : alone)
    if (!(ns = timed(device, clock, random, memory, 1))) return {};
  std::ranges::sort(alone);
  ReadCost cost;
  cost.alone_ns = alone[kAlone / 2];
  for (std::size_t i = 0; i < kRows; ++i) {
    const std::uint64_t ns = timed(device, clock, random, memory, kRow);
    if (!ns) return {};
    const std::uint64_t each = std::max<std::uint64_t>((ns - std::min(ns, cost.alone_ns)) / kRow, 1);
    cost.in_row_ns = cost.in_row_ns ? std::min(cost.in_row_ns, each) : each;
  }
  return cost;
}

}  // namespace varve::jobs
