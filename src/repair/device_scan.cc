#include "repair/device_scan.h"

#include <algorithm>

#include "base/buffer.h"
#include "io/patient_read.h"

namespace varve::repair {

namespace {

constexpr std::uint64_t kScanBlocks = 1024;  // 4 MiB

}  // namespace

void scan_device(io::BlockDevice& device, check::Progress* progress,
                 const std::function<void(BlockAddr, std::span<const std::byte>)>& visit) {
  AlignedBuffer buffer(kScanBlocks * kBlockSize);
  const std::uint64_t blocks = device.geometry().blocks_there();
  for (std::uint64_t at = 0; at < blocks; at += kScanBlocks) {
    const std::uint64_t count = std::min(kScanBlocks, blocks - at);
    const bool whole = device.read(at * kBlockSize, buffer.span().first(count * kBlockSize)).ok();
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto block = buffer.span().subspan(i * kBlockSize, kBlockSize);
      if (whole || io::read_patiently(device, (at + i) * kBlockSize, block).ok()) visit(BlockAddr{at + i}, block);
    }
    if (progress) progress->update("scan", at, blocks);
  }
}

}  // namespace varve::repair
