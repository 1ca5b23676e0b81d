// Finding and spoiling things in an image: what rot, misdirected writes and malice do.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "format/chunk.h"
#include "format/superblock_ring.h"
#include "io/mem_device.h"

namespace varve::test {

std::vector<std::byte> block_at(const io::MemDevice& image, BlockAddr address);
void flip_bit(io::MemDevice& image, BlockAddr address, std::size_t bit);
void wipe(io::MemDevice& image, BlockAddr address);

// Where a block with exactly these bytes stands; none if nowhere.
std::vector<BlockAddr> find_block(const io::MemDevice& image, std::span<const std::byte> bytes);

struct FoundChunk {
  format::ChunkHeader header;
  std::uint32_t crc = 0;
};
// The newest one.
format::Superblock superblock_of(const io::MemDevice& image);
// Where its two copies stand, the first one first.
std::vector<BlockAddr> superblock_places(const io::MemDevice& image);
// The chunks that a recovery would walk: of the superblock's epoch, after its checkpoint, by LSN without a gap.
std::vector<FoundChunk> chain_of(const io::MemDevice& image);

}  // namespace varve::test
