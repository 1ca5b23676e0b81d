// Helpers for the .cc files of this room: fixed-offset fields and the block CRC. Not for other rooms.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "base/result.h"
#include "base/types.h"
#include "format/layout.h"
#include "format/varint.h"

namespace varve::format {

template <class... Args>
Error corrupt(fmt::format_string<Args...> text, Args&&... args) {
  return {Errc::corrupt, fmt::format(text, std::forward<Args>(args)...)};
}

// CRC over `bytes` with the four bytes at `crc_offset` taken as zero.
inline std::uint32_t crc_without_field(std::span<const std::byte> bytes, std::size_t crc_offset) {
  static constexpr std::array<std::byte, 4> kZero{};
  std::uint32_t crc = crc32c(bytes.first(crc_offset));
  crc = crc32c(kZero, crc);
  return crc32c(bytes.subspan(crc_offset + 4), crc);
}

inline void store32(std::span<std::byte> bytes, std::size_t offset, std::uint32_t value) {
  for (unsigned i = 0; i < 4; ++i) bytes[offset + i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace varve::format
