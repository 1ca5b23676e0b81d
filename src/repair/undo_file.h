// The undo file's parts, for its writer and its reader (undo.h has the format).
#pragma once

#include <array>

#include "io/block_device.h"

namespace varve::repair {

inline constexpr std::size_t kUndoHeaderBytes = 32;
inline constexpr std::size_t kUndoRecordBytes = 24;     // before the blocks
inline constexpr std::uint64_t kMostUndoBlocks = 256;   // of a record
inline constexpr std::uint64_t kUndoEnd = ~std::uint64_t{0};  // address of the last record
inline constexpr std::size_t kUndoEndBytes = 8;         // its payload

struct UndoHeader {
  std::uint64_t device_blocks = 0;
  std::uint64_t identity = 0;
};
std::array<std::byte, kUndoHeaderBytes> encode_undo_header(const UndoHeader& header);
Result<UndoHeader> decode_undo_header(std::span<const std::byte> bytes);

struct UndoRecord {
  std::uint64_t first = 0;
  std::uint32_t blocks = 0;
  std::uint64_t sequence = 0;
  std::uint32_t crc = 0;  // as read

  bool is_end() const { return first == kUndoEnd && blocks == 0; }
  std::size_t payload_bytes() const { return is_end() ? kUndoEndBytes : blocks * kBlockSize; }
};
std::array<std::byte, kUndoRecordBytes> encode_undo_record(const UndoRecord& record, std::span<const std::byte> payload);
UndoRecord decode_undo_record(std::span<const std::byte> bytes);
bool is_whole(const UndoRecord& record, std::span<const std::byte> payload);

// The identity of the filesystem that a superblock in the first or last block names; 0 without one.
std::uint64_t filesystem_on(io::BlockDevice& device);

}  // namespace varve::repair
