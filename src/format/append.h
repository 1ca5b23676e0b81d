// Appending fields to a growing byte vector, for values, records and messages, as format/codec.h reads them.
#pragma once

#include "format/fields.h"
#include "format/item.h"

namespace varve::format {

inline void append_bytes(Bytes& out, std::span<const std::byte> bytes) {
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void append_text(Bytes& out, std::string_view text) {
  append_bytes(out, std::as_bytes(std::span(text.data(), text.size())));
}
inline void append_fixed(Bytes& out, std::uint64_t value, unsigned bytes) {
  std::array<std::byte, 8> raw;
  for (unsigned i = 0; i < bytes; ++i) raw[i] = static_cast<std::byte>(value >> (8 * i));
  append_bytes(out, std::span(raw).first(bytes));
}
inline void append8(Bytes& out, std::uint8_t value) { out.push_back(static_cast<std::byte>(value)); }
inline void append_varint(Bytes& out, std::uint64_t value) {
  std::array<std::byte, kMaxVarintBytes> raw;
  append_bytes(out, std::span(raw.data(), write_varint(raw.data(), value)));
}
inline void append_signed(Bytes& out, std::int64_t value) {  // zigzag
  append_varint(out, (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
}

// A name of a directory entry: 1…255 bytes, no '/', no NUL, neither "." nor "..".
bool is_valid_name(std::string_view name);

}  // namespace varve::format
