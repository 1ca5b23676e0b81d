// Helpers for the .cc files of this room: fixed-offset fields, raw varints and the block CRC. Not for other rooms.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "base/crc32c.h"
#include "base/result.h"
#include "base/types.h"

namespace varve::format {

inline constexpr std::uint64_t kMaxAddress = (1ULL << 48) - 1;  // addresses are stored in 48 bits

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

inline constexpr std::size_t kMaxVarintBytes = 10;

// LEB128 at `out`, which has room for kMaxVarintBytes; returns the end.
inline std::byte* write_varint(std::byte* out, std::uint64_t value) {
  while (value >= 0x80) {
    *out++ = static_cast<std::byte>(value | 0x80);
    value >>= 7;
  }
  *out++ = static_cast<std::byte>(value);
  return out;
}

// Reads a varint at `at`; null when it runs past `end` or exceeds 64 bits. The hot loop of node decoding.
inline const std::byte* read_varint(const std::byte* at, const std::byte* end, std::uint64_t& value) {
  if (at != end && static_cast<std::uint8_t>(*at) < 0x80) {
    value = static_cast<std::uint8_t>(*at);
    return at + 1;
  }
  value = 0;
  for (unsigned shift = 0; shift < 64 && at != end; shift += 7) {
    const auto byte = static_cast<std::uint8_t>(*at++);
    if (shift == 63 && byte > 1) return nullptr;
    value |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return at;
  }
  return nullptr;
}

}  // namespace varve::format
