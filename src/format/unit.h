// A coded unit as it is stored: a header, coded bytes, zeros to the end of its last block. What the bytes decode to is for the room blocks.
#pragma once

#include <cstdint>
#include <span>

#include "base/result.h"
#include "base/types.h"

namespace varve::format {

inline constexpr std::uint32_t kUnitMagic = 0x5556'5256;  // "VRVU"
inline constexpr std::uint32_t kUnitBlocks = 32;          // file blocks of a unit: 128 KiB
inline constexpr std::size_t kUnitHeaderBytes = 16;

enum class Coding : std::uint8_t { zstd = 1, lz4 = 2 };

// How many blocks a unit of so many file blocks may take on the device, at most: one in eight is saved. 0: such a unit is never coded.
constexpr std::uint32_t most_stored_blocks(std::uint32_t blocks) { return blocks - (blocks + 7) / 8; }

struct UnitHeader {
  Coding coding = Coding::zstd;
  std::uint32_t blocks = 0;       // file blocks that it stands for, from the first of the unit on: 2…kUnitBlocks
  std::uint32_t coded_bytes = 0;  // behind the header
  std::uint32_t crc = 0;          // of the content

  std::uint32_t stored_blocks() const { return static_cast<std::uint32_t>(blocks_for(kUnitHeaderBytes + coded_bytes)); }
  bool operator==(const UnitHeader&) const = default;
};

// `stored`: whole blocks, with the coded bytes in their place. Writes the header before them and zeros behind them.
void encode_unit_header(const UnitHeader& header, std::span<std::byte> stored);

// `stored`: all blocks of the unit, no fewer and no more. Errc::corrupt says what does not fit.
Result<UnitHeader> decode_unit_header(std::span<const std::byte> stored);

// The coded bytes of a unit whose header has been decoded.
std::span<const std::byte> coded_bytes_of(const UnitHeader& header, std::span<const std::byte> stored);

}  // namespace varve::format
