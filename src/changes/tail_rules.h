// Where the last partial block of a file stands, by its size alone (docs/design.md, "Tails"). Pure functions, for any thread.
#pragma once

#include <cstdint>

#include "format/superblock.h"

namespace varve::changes {

enum class TailPlace : std::uint8_t {
  block,   // on the device, as all other blocks; or there is no partial block
  logged,  // as bytes in the log until the next checkpoint, which needs a block for it
  kept,    // as bytes in the inode file
};

// Returns how many bytes the last partial block of a file of `size` bytes has; 0: the file ends with a block.
constexpr std::uint64_t partial_bytes(std::uint64_t size) { return size % kBlockSize; }

constexpr TailPlace place_of_tail(std::uint64_t size, const format::TailLimits& limits) {
  const std::uint64_t bytes = partial_bytes(size);
  if (bytes == 0 || limits.kept == 0) return TailPlace::block;
  if (bytes <= limits.kept) return TailPlace::kept;
  return bytes <= limits.logged ? TailPlace::logged : TailPlace::block;
}

// Bytes that the record of a file's tail may have beside its head, when the file has `size` bytes.
constexpr std::uint64_t tail_record_bytes(std::uint64_t size, const format::TailLimits& limits) {
  return place_of_tail(size, limits) == TailPlace::block ? 0 : partial_bytes(size);
}

// May the tail of a file of `before` bytes go on as one when it has `after` bytes? Else it needs a block, or goes.
constexpr bool stays_last(std::uint64_t before, std::uint64_t after) {
  return partial_bytes(before) != 0 && partial_bytes(after) != 0 && blocks_for(before) == blocks_for(after);
}

}  // namespace varve::changes
