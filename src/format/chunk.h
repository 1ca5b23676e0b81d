// Header of a chunk, the unit of the chain. 1…most_header_blocks() blocks, one CRC over all of
// them, followed on the device by `payload_blocks` blocks of inline payload.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "base/result.h"
#include "format/item.h"
#include "format/layout.h"

namespace varve::format {

// A stretch of consecutive blocks that belongs to the chain.
struct Run {
  BlockAddr start;
  std::uint32_t blocks = 0;

  BlockAddr end() const { return start + blocks; }
  bool operator==(const Run&) const = default;
};

// On disk, in this order: magic u32, crc u32 (of all header blocks with this field zero), identity u64, epoch u64, lsn u64,
// previous u32 (crc field of header lsn-1), header_blocks u16, zero u16, payload_blocks u32, record_bytes u32, address u48,
// run (u48, u32), next run (u48, u32), durable u64, settled u64, clock u64, next_ino u64, payload_crc u32, elsewhere (u48, u32), zeros
// to 128, then the records, then zeros.
struct ChunkHeader {
  std::uint64_t identity = 0;
  std::uint64_t epoch = 0;  // random, of this mount; never shown to users
  Lsn lsn;
  std::uint32_t previous_crc = 0;
  std::uint16_t header_blocks = 0;
  std::uint32_t payload_blocks = 0;
  std::uint32_t record_bytes = 0;
  BlockAddr address;   // of the header's first block
  Run run;             // the run this chunk stands in
  Run next_run;        // reserved: where the chain goes on when the next chunk does not fit into rest()
  Lsn durable;         // highest LSN covered by a returned flush when this was sealed
  Serial settled;      // newest settled checkpoint then
  std::uint64_t clock = 0;     // log clock after its last operation, in blocks
  std::uint64_t next_ino = 0;  // first inode number never handed out
  std::uint32_t payload_crc = 0;  // crc32c over the little-endian CRCs of the inline payload blocks, in order
  Run elsewhere;       // with kIncompatGaps: where the next chunk stands if it fits; no blocks: right behind this one

  std::uint32_t total_blocks() const { return header_blocks + payload_blocks; }
  BlockAddr end() const { return address + total_blocks(); }
  // Where the next chunk stands if it fits. Of a header that has been checked.
  Run rest() const { return elsewhere.blocks ? elsewhere : Run{end(), static_cast<std::uint32_t>(run.end() - end())}; }
  bool operator==(const ChunkHeader&) const = default;
};

inline constexpr std::size_t kChunkHeaderBytes = 128;
// What every chunk has room for, so that any one operation must do with it.
inline constexpr std::size_t kMaxChunkRecordBytes = kMaxChunkHeaderBlocks * kBlockSize - kChunkHeaderBytes;

// Of a filesystem with such segments: a chunk stands in one of them, with as much inline payload at most as header.
constexpr std::uint32_t most_header_blocks(std::uint32_t segment_blocks) {
  return std::clamp(segment_blocks / 4, kMaxChunkHeaderBlocks, kMaxLongHeaderBlocks);
}
constexpr std::size_t most_record_bytes(std::uint32_t segment_blocks) {
  return most_header_blocks(segment_blocks) * kBlockSize - kChunkHeaderBytes;
}

constexpr std::uint16_t chunk_header_blocks(std::size_t record_bytes) {
  return static_cast<std::uint16_t>(blocks_for(kChunkHeaderBytes + record_bytes));
}

// Fills `out` (header_blocks whole blocks) and returns the header's crc field.
std::uint32_t encode_chunk(const ChunkHeader& header, std::span<const std::byte> records, std::span<std::byte> out);

// Checks `first_block` for a plausible header before its CRC can be known, so that the rest may be read; bounds every
// length (header_blocks ≤ kMaxLongHeaderBlocks and inside the run). No other promise.
Result<ChunkHeader> peek_chunk(std::span<const std::byte> first_block);

struct Chunk {
  ChunkHeader header;
  std::uint32_t crc = 0;
  std::span<const std::byte> records;
};
// `blocks`: at least header_blocks blocks. Verifies the CRC and all bounds.
Result<Chunk> decode_chunk(std::span<const std::byte> blocks);

}  // namespace varve::format
