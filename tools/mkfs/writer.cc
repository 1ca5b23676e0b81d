#include "mkfs/writer.h"

#include <algorithm>
#include <cstring>

#include "base/buffer.h"

namespace varve::mkfs {

namespace {

constexpr std::uint64_t kWipeStartBytes = 1 << 20;  // every signature that readers look for at the start
constexpr std::uint64_t kWipeEndBytes = 768 << 10;  // backup tables, RAID metadata, labels of pools at the end
constexpr std::uint64_t kZeroStepBytes = 4 << 20;

using Advance = std::function<Status(std::uint64_t done, std::uint64_t all)>;

Status write_zeros(io::BlockDevice& device, std::uint64_t from, std::uint64_t to, const Advance& advance = {}) {
  const auto zeros = AlignedBuffer::zeroed(std::min(to - from, kZeroStepBytes));
  for (std::uint64_t at = from; at < to; at += zeros.size()) {
    if (advance) TRY(advance(at - from, to - from));
    TRY(device.write(at, zeros.span().first(std::min<std::uint64_t>(zeros.size(), to - at))));
  }
  return {};
}

Status wipe(io::BlockDevice& device, const WriteOptions& options) {
  const io::Geometry& geometry = device.geometry();
  // A hint only: a device that refuses it loses nothing.
  if (options.discard && geometry.is_block_device && geometry.supports_discard)
    (void)device.discard(0, geometry.size_bytes).ok();
  if (!options.prewrite) return wipe_signatures(device);
  TRY(write_zeros(device, 0, geometry.size_bytes, options.during_prewrite));
  return device.flush();
}

// The area in one piece, so that no old bytes are left between the superblocks in it, and the device sees a stream.
Status write_superblocks(io::BlockDevice& device, const format::EmptyFilesystem& made) {
  const format::SuperblockArea& area = made.super.area;
  const std::vector<format::MadeNode> blocks = format::superblocks_of(made);
  if (area) {
    AlignedBuffer bytes = AlignedBuffer::zeroed(area.blocks() * kBlockSize);
    for (const format::MadeNode& block : blocks)
      if (block.address >= area.start && block.address < area.start + area.blocks())
        std::memcpy(bytes.data() + (block.address.v - area.start.v) * kBlockSize, block.bytes.data(), kBlockSize);
    TRY(device.write(area.start.v * kBlockSize, bytes.span()));
    TRY(device.flush());  // before anything tells of it
  }
  AlignedBuffer block(kBlockSize);
  for (const BlockAddr address : {BlockAddr{0}, BlockAddr{made.super.device_blocks - 1}}) {
    const auto super = std::ranges::find(blocks, address, &format::MadeNode::address);
    std::memcpy(block.data(), super->bytes.data(), kBlockSize);
    TRY(device.write(address.v * kBlockSize, block.span()));
  }
  return {};
}

}  // namespace

Status wipe_signatures(io::BlockDevice& device) {
  const std::uint64_t size = device.geometry().size_bytes;
  TRY(write_zeros(device, 0, std::min(kWipeStartBytes, size)));
  TRY(write_zeros(device, size - std::min(kWipeEndBytes, size), size));
  return device.flush();
}

Status write_filesystem(io::BlockDevice& device, const format::EmptyFilesystem& made, const WriteOptions& options) {
  TRY(wipe(device, options));
  AlignedBuffer nodes(made.nodes.size() * kBlockSize);
  for (std::size_t i = 0; i < made.nodes.size(); ++i)
    std::memcpy(nodes.data() + i * kBlockSize, made.nodes[i].bytes.data(), kBlockSize);
  TRY(device.write(made.nodes.front().address.v * kBlockSize, nodes.span()));
  // Zeros where the chain begins: an earlier filesystem's chunks could not pass for new ones, but tools need not see them.
  TRY(write_zeros(device, made.super.chain.start.v * kBlockSize, (made.super.chain.start.v + 1) * kBlockSize));
  TRY(device.flush());

  TRY(write_superblocks(device, made));
  return device.flush();
}

}  // namespace varve::mkfs
