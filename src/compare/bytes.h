// Numbers and texts of messages, at the end of a byte vector.
#pragma once

#include <string_view>

#include "format/append.h"

namespace varve::compare {

using format::Bytes;

inline void put(Bytes& out, std::uint64_t number) { format::append_varint(out, number); }

// With its length before it.
inline void put(Bytes& out, std::span<const std::byte> bytes) {
  put(out, bytes.size());
  format::append_bytes(out, bytes);
}
inline void put(Bytes& out, std::string_view text) { put(out, std::as_bytes(std::span(text.data(), text.size()))); }

}  // namespace varve::compare
