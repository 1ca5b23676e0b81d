// Records of `.mfile` (one per device block) and `.ffile` (one per segment).
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "format/node.h"

namespace varve::format {

// --- .mfile: the owner of a block. Meaningful only where `.ffile` says the block is live -----------------------------------
enum class Owner : std::uint8_t { none = 0, file_block = 1, node = 2, super_image = 3 };

// 24 bytes: owner u8, then of a file block: estimate u8, ino u64, block u48, clock u32, crc u32; of a node: tree u8,
// level u8, zeros; of the superblock's image: zeros.
struct ReverseEntry {
  Owner owner = Owner::none;
  std::uint8_t estimate = 0;   // of a file block
  TreeId tree{};               // of a node
  std::uint8_t level = 0;      // of a node
  Ino ino;                     // of a file block
  std::uint64_t block = 0;     // file block (48 bits)
  std::uint32_t clock = 0;     // of a file block
  std::uint32_t crc = 0;       // of a file block; nodes carry their own

  bool operator==(const ReverseEntry&) const = default;
};
inline constexpr std::size_t kReverseEntryBytes = 24;
void encode_reverse_entry(const ReverseEntry& entry, std::span<std::byte> record);
Result<ReverseEntry> decode_reverse_entry(std::span<const std::byte> record);
MapShape reverse_map_shape(std::uint64_t device_blocks);

// --- .ffile: one record per segment -------------------------------------------------------------------------------------
// Header of 32 bytes: group u8, flags u8, zero u16, live u32, youngest u32, zero u32, clock_sum u64, rate_sum u64; then
// one bit per block (bit i % 8 of byte i / 8: block i of the segment is live).
struct SegmentRecord {
  std::uint8_t group = 0;         // temperature group that filled it, kGroupChain, kGroupNodes
  std::uint8_t flags = 0;         // bit 0: holds bad blocks
  std::uint32_t live = 0;         // set bits
  std::uint32_t youngest = 0;     // clock of its youngest live block
  std::uint64_t clock_sum = 0;    // over live file blocks
  std::uint64_t rate_sum = 0;     // over live file blocks: sum of 2^32 / estimated interval

  bool operator==(const SegmentRecord&) const = default;
};
inline constexpr std::uint8_t kSegmentHasBadBlocks = 1;
inline constexpr std::uint8_t kGroupChain = 0xFE;
inline constexpr std::uint8_t kGroupNodes = 0xFF;
inline constexpr std::size_t kSegmentRecordHeaderBytes = 32;
constexpr std::size_t segment_record_bytes(std::uint32_t segment_blocks) {
  return kSegmentRecordHeaderBytes + segment_blocks / 8;
}
void encode_segment_record(const SegmentRecord& record, std::span<std::byte> out);  // header part only
Result<SegmentRecord> decode_segment_record(std::span<const std::byte> in);         // header part only
MapShape free_map_shape(std::uint64_t segments, std::uint32_t segment_blocks);

}  // namespace varve::format
