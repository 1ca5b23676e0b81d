// Numbers and texts at the end of a byte vector, as format/codec.h reads them.
#pragma once

#include <array>
#include <string_view>

#include "format/item.h"
#include "format/varint.h"

namespace varve::compare {

using format::Bytes;

inline void put(Bytes& out, std::uint64_t number) {
  std::array<std::byte, format::kMaxVarintBytes> raw;
  out.insert(out.end(), raw.data(), format::write_varint(raw.data(), number));
}

// With its length before it.
inline void put(Bytes& out, std::span<const std::byte> bytes) {
  put(out, bytes.size());
  out.insert(out.end(), bytes.begin(), bytes.end());
}
inline void put(Bytes& out, std::string_view text) { put(out, std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace varve::compare
