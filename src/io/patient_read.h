// Reading for callers that take what cannot be read for lost: errors pass, as when a path fails over or a sector is weak, and
// what is given up does not come back.
#pragma once

#include <vector>

#include "io/block_device.h"

namespace varve::io {

inline constexpr unsigned kPatientAttempts = 4;

// As BlockDevice::read, but a read that fails is repeated. Meant for single blocks: where a larger range fails, the blocks
// of it that can be read are wanted first.
Status read_patiently(BlockDevice& device, std::uint64_t offset, std::span<std::byte> out);

// All of whole blocks that can be read: where not all at once, one by one, patiently. What cannot be read comes back as zeros.
// Returns which blocks are there.
std::vector<bool> read_what_is_there(BlockDevice& device, std::uint64_t offset, std::span<std::byte> out);

// Many reads at once: metadata is scattered, and a device answers a hundred requests in little more time than one.
struct ReadPiece {
  BlockAddr address;
  std::span<std::byte> out;  // whole blocks, aligned
  int error = 0;             // out: 0 or errno
};
// Returns when all are done. Single blocks that failed have then been read again, alone.
void read_pieces(BlockDevice& device, std::span<ReadPiece> pieces);

}  // namespace varve::io
