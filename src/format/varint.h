// LEB128: seven bits of a number in each byte, the lowest first; the top bit says that more follow.
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve::format {

inline constexpr std::size_t kMaxVarintBytes = 10;

constexpr std::size_t varint_bytes(std::uint64_t value) {
  std::size_t n = 1;
  for (; value >= 0x80; value >>= 7) ++n;
  return n;
}

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
