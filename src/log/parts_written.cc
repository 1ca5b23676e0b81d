#include "log/parts_written.h"

#include <cstring>

#include "base/invariant.h"

namespace varve::log {

void PartsWritten::add(BlockAddr address, std::uint32_t crc, std::span<const std::byte> block) {
  MEMORY_INVARIANT(block.size() == kBlockSize);
  INVARIANT(address.v != 0);  // such a name is an empty place
  const Lock lock(mutex_);
  std::memcpy(blocks_.data() + next_ * kBlockSize, block.data(), kBlockSize);
  names_[next_] = {address, crc};
  next_ = (next_ + 1) % kBlocks;
}

bool PartsWritten::find(BlockAddr address, std::uint32_t crc, std::span<std::byte> out) const {
  MEMORY_INVARIANT(out.size() == kBlockSize);
  const Lock lock(mutex_);
  for (std::size_t i = 0; i < kBlocks; ++i) {
    if (names_[i].address != address || names_[i].crc != crc || !address) continue;
    std::memcpy(out.data(), blocks_.data() + i * kBlockSize, kBlockSize);
    return true;
  }
  return false;
}

}  // namespace varve::log
