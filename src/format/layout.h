// Constants of the on-disk format (docs/format.md). All integers on disk are little-endian.
#pragma once

#include <array>
#include <cstdint>

#include "base/types.h"

namespace varve::format {

inline constexpr std::uint64_t kSuperMagic = 0x1A45'5645'5652'4156ULL;  // "VARVEVE\x1A", bytes 56 41 52 56 45 56 45 1a
inline constexpr std::uint32_t kNodeMagic = 0x4E56'5256;                // "VRVN"
inline constexpr std::uint32_t kChunkMagic = 0x4356'5256;               // "VRVC"
inline constexpr std::uint32_t kFormatVersion = 1;

inline constexpr std::uint64_t kMaxAddress = (1ULL << 48) - 1;    // addresses are stored in 48 bits
inline constexpr std::uint64_t kMinDeviceBlocks = 2048;          // 8 MiB
inline constexpr std::uint32_t kMinSegmentBlocks = 64;           // 256 KiB
inline constexpr std::uint32_t kMaxSegmentBlocks = 16384;        // 64 MiB
inline constexpr std::uint32_t kMaxChunkHeaderBlocks = 32;        // of every filesystem
inline constexpr std::uint32_t kMaxLongHeaderBlocks = 256;        // of those with kIncompatLongHeaders
inline constexpr std::uint32_t kMaxExtentBlocks = 256;
inline constexpr std::size_t kMaxTail = 1024;                    // bytes of a file that stand in its item
inline constexpr std::size_t kMaxLoggedTail = kBlockSize;        // the same in a record of the log
inline constexpr std::size_t kUsualLoggedTail = 3584;            // in one block with what else a chunk's header mostly has
inline constexpr unsigned kMaxGroups = 16;
inline constexpr std::size_t kMaxName = 255;
inline constexpr std::size_t kMaxSymlink = 4095;
inline constexpr std::size_t kMaxXattrValue = 65536;
inline constexpr std::uint64_t kInoLimit = 1ULL << 56;           // numbers of inodes are below; nobody lives to use them up
inline constexpr std::uint64_t kMostNextIno = 2 * kInoLimit;     // what says that the next one is above was not written by Varve
inline constexpr std::uint64_t kMostCount = 1ULL << 62;          // of serials, chunks and the log clock: from there on nothing is written
inline constexpr std::uint64_t kMaxFileBlocks = 1ULL << 40;  // 4 PiB
inline constexpr std::uint64_t kMaxFileBytes = (kMaxFileBlocks << kBlockShift) - 1;

using Uuid = std::array<std::uint8_t, 16>;

}  // namespace varve::format
