#include "repair/device_scan.h"

#include <algorithm>
#include <vector>

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
    const std::vector<bool> is_there = io::read_what_is_there(device, at * kBlockSize, buffer.span().first(count * kBlockSize));
    for (std::uint64_t i = 0; i < count; ++i)
      if (is_there[i]) visit(BlockAddr{at + i}, buffer.span().subspan(i * kBlockSize, kBlockSize));
    if (progress) progress->update("scan", at, blocks);
  }
}

}  // namespace varve::repair
