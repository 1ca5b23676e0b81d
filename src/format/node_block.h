// What all kinds of nodes share: writing the header, coding keys. Not for other rooms.
#pragma once

#include "format/fields.h"
#include "format/node.h"

namespace varve::format {

// Writes header and payload, zero-fills the rest, sets the CRC. Returns the block_crc.
std::uint32_t write_node(std::span<std::byte> block, const NodeHeader& header, std::span<const std::byte> payload);

// Payload bytes that the header declares used; the header has been checked.
inline std::span<const std::byte> used_payload(std::span<const std::byte> block, const NodeHeader& header) {
  return block.subspan(kNodeHeaderBytes, header.used);
}

inline constexpr std::uint8_t kSameIno = 1;
inline constexpr std::uint8_t kSameKind = 2;
inline constexpr std::size_t kMaxKeyBytes = 2 + 2 * kMaxVarintBytes;

// Codes `key` behind `previous` (null: first of its node) at `out`, which has room for kMaxKeyBytes; returns the end.
inline std::byte* write_key(std::byte* out, const Key* previous, const Key& key) {
  const bool same_ino = previous && previous->ino == key.ino;
  const bool same_kind = previous && previous->kind == key.kind;
  *out++ = static_cast<std::byte>((same_ino ? kSameIno : 0) | (same_kind ? kSameKind : 0));
  if (!same_ino) out = write_varint(out, previous ? key.ino - previous->ino : key.ino.v);
  if (!same_kind) *out++ = static_cast<std::byte>(key.kind);
  return write_varint(out, same_ino && same_kind ? key.offset - previous->offset : key.offset);
}

// Reads the key that follows `key`, in place; null when the bytes make no sense, the kind is above `last` or the order is not ascending.
inline const std::byte* read_key(const std::byte* at, const std::byte* end, bool first, ItemKind last, Key& key) {
  if (at == end) return nullptr;
  const auto tag = static_cast<std::uint8_t>(*at++);
  if (tag > (kSameIno | kSameKind) || (first && tag != 0)) return nullptr;
  const Key previous = key;
  std::uint64_t delta = 0;
  if (!(tag & kSameIno)) {
    if (!(at = read_varint(at, end, delta))) return nullptr;
    key.ino = first ? Ino{delta} : previous.ino + delta;
  }
  if (!(tag & kSameKind)) {
    if (at == end) return nullptr;
    key.kind = static_cast<ItemKind>(*at++);
    if (key.kind > last) return nullptr;
  }
  if (!(at = read_varint(at, end, delta))) return nullptr;
  key.offset = tag == (kSameIno | kSameKind) ? previous.offset + delta : delta;
  return first || previous < key ? at : nullptr;
}

}  // namespace varve::format
