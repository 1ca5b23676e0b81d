#include "fuzz/structure/parts.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc32c.h"
#include "format/chunk.h"
#include "format/map_record.h"
#include "format/node_block.h"
#include "format/superblock_layout.h"

namespace varve::fuzz {

using format::kNodeHeaderBytes;
using format::kNodePayloadBytes;

namespace {

constexpr std::size_t kCountAt = 32, kUsedAt = 34, kFirstAt = 36, kNodeCrcAt = 4;
constexpr std::size_t kRecordBytesAt = 44;
constexpr std::size_t kSlotsBytes = format::kMapFanout * format::kMapSlotBytes;

std::vector<Element> equal_pieces(View payload, std::size_t size) {
  std::vector<Element> all;
  for (std::size_t at = 0; at + size <= payload.size(); at += size) {
    const View piece = payload.subspan(at, size);
    all.push_back({{}, Bytes(piece.begin(), piece.end())});
  }
  return all;
}

std::optional<std::vector<Element>> take_leaf(View block) {
  const auto header = format::decode_node_header(block);
  if (!header.ok()) return std::nullopt;
  const auto items = format::decode_items(block, *header);
  if (!items.ok()) return std::nullopt;
  std::vector<Element> all;
  for (const format::ItemRef& item : *items) all.push_back({item.key, Bytes(item.value.begin(), item.value.end())});
  return all;
}

std::optional<std::vector<Element>> take_interior(View block) {
  const auto header = format::decode_node_header(block);
  if (!header.ok()) return std::nullopt;
  const auto children = format::decode_children(block, *header);
  if (!children.ok()) return std::nullopt;
  std::vector<Element> all;
  for (const format::ChildRef& child : *children) {
    Element& element = all.emplace_back(Element{child.first, Bytes(10 + format::kMaxVarintBytes)});
    put_fixed(element.value, 0, 6, child.ref.address.v);
    put_fixed(element.value, 6, 4, child.ref.crc);
    const std::byte* const end = format::write_varint(element.value.data() + 10, child.ref.blocks);
    element.value.resize(static_cast<std::size_t>(end - element.value.data()));
  }
  return all;
}

std::optional<std::vector<Element>> take_records(View block) {
  const auto chunk = format::decode_chunk(block);
  if (!chunk.ok()) return std::nullopt;
  std::vector<Element> all;
  const std::byte* at = chunk->records.data();
  const std::byte* const end = at + chunk->records.size();
  while (at != end) {
    const std::byte kind = *at;
    std::uint64_t length = 0;
    at = format::read_varint(at + 1, end, length);
    if (!at || length > static_cast<std::size_t>(end - at)) return std::nullopt;
    Element& element = all.emplace_back(Element{{}, Bytes(1, kind)});
    element.value.insert(element.value.end(), at, at + length);
    at += length;
  }
  return all;
}

void append_varint(Bytes& out, std::uint64_t number) {
  std::array<std::byte, format::kMaxVarintBytes> raw;
  out.insert(out.end(), raw.data(), format::write_varint(raw.data(), number));
}

// With keys of items or children, in whatever order they are.
Bytes keyed_payload(Part part, std::span<const Element> elements) {
  Bytes payload;
  const format::Key* previous = nullptr;
  for (const Element& element : elements) {
    std::array<std::byte, format::kMaxKeyBytes> raw;
    payload.insert(payload.end(), raw.data(), format::write_key(raw.data(), previous, element.key));
    if (part == Part::leaf) append_varint(payload, element.value.size());
    payload.insert(payload.end(), element.value.begin(), element.value.end());
    previous = &element.key;
  }
  return payload;
}

bool put_keyed(Part part, std::span<const Element> elements, std::span<std::byte> block) {
  const Bytes payload = keyed_payload(part, elements);
  if (payload.size() > kNodePayloadBytes) return false;
  std::ranges::fill(block.subspan(kNodeHeaderBytes), std::byte{0});
  std::ranges::copy(payload, block.begin() + kNodeHeaderBytes);
  put_fixed(block, kCountAt, 2, elements.size());
  put_fixed(block, kUsedAt, 2, payload.size());
  if (elements.empty()) return true;
  put_fixed(block, kFirstAt, 8, elements.front().key.ino.v);
  put_fixed(block, kFirstAt + 8, 1, static_cast<std::uint64_t>(elements.front().key.kind));
  put_fixed(block, kFirstAt + 9, 8, elements.front().key.offset);
  return true;
}

bool put_map(std::span<const Element> elements, std::span<std::byte> block) {
  std::size_t at = kNodeHeaderBytes;
  for (const Element& element : elements) {
    if (at + element.value.size() > block.size()) return false;
    std::ranges::copy(element.value, block.begin() + static_cast<std::ptrdiff_t>(at));
    at += element.value.size();
  }
  return true;
}

bool put_records(std::span<const Element> elements, std::span<std::byte> block) {
  Bytes records;
  for (const Element& element : elements) {
    if (element.value.empty()) continue;
    records.push_back(element.value[0]);
    append_varint(records, element.value.size() - 1);
    records.insert(records.end(), element.value.begin() + 1, element.value.end());
  }
  const auto room = block.subspan(format::kChunkHeaderBytes);
  if (records.size() > room.size()) return false;
  std::ranges::fill(room, std::byte{0});
  std::ranges::copy(records, room.begin());
  put_fixed(block, kRecordBytesAt, 4, records.size());
  return true;
}

// In slots of an interior node of items, wherever each ends: children are not all of one size.
std::vector<Reference> references_to_children(View block) {
  std::vector<Reference> all;
  const std::size_t used = std::min<std::size_t>(get_fixed(block, kUsedAt, 2), kNodePayloadBytes);
  const std::byte* at = block.data() + kNodeHeaderBytes;
  const std::byte* const end = at + used;
  format::Key key;
  for (bool first = true; at != end; first = false) {
    at = format::read_key(at, end, first, format::ItemKind::name, key);
    if (!at || end - at < 11) break;
    const auto place = static_cast<std::size_t>(at - block.data());
    all.push_back({place, 6, place + 6});
    std::uint64_t blocks = 0;
    at = format::read_varint(at + 10, end, blocks);
    if (!at) break;
  }
  return all;
}

std::vector<Reference> references_to_snapshots(View block) {
  std::vector<Reference> all;
  const auto header = format::decode_node_header(block);
  if (!header.ok() || header->tree != format::TreeId::snapshots) return all;
  const auto items = format::decode_items(block, *header);
  if (!items.ok()) return all;
  for (const format::ItemRef& item : *items) {
    if (item.key.kind != format::ItemKind::snapshot || item.value.size() < 12) continue;
    const auto place = static_cast<std::size_t>(item.value.data() - block.data());
    all.push_back({place + 2, 6, place + 8});
  }
  return all;
}

std::vector<Reference> references_of_superblock(std::size_t begin) {
  using namespace format::superblock_layout;
  std::vector<Reference> all;
  for (const std::size_t at : {kRefsAt, kRefsAt + 24, kRefsAt + 48, kRefsAt + 72, kSnapshotsAt})
    all.push_back({begin + at, 8, begin + at + 16});
  return all;
}

std::uint32_t seal_at(std::span<std::byte> bytes, std::size_t at) {
  put_fixed(bytes, at, 4, 0);
  const std::uint32_t crc = crc32c(bytes);
  put_fixed(bytes, at, 4, crc);
  return crc;
}

// A superblock without what its node has no room for.
void seal_inside(std::span<std::byte> block) {
  std::array<std::byte, kBlockSize> inside{};
  std::ranges::copy(block.subspan(kNodeHeaderBytes), inside.begin());
  put_fixed(block, kNodeHeaderBytes + format::superblock_layout::kCrcAt, 4, seal_at(inside, format::superblock_layout::kCrcAt));
}

}  // namespace

bool Element::empty() const {
  return std::ranges::all_of(value, [](std::byte byte) { return byte == std::byte{0}; });
}

std::optional<std::vector<Element>> take_apart(Part part, View block, std::uint32_t segment_blocks) {
  switch (part) {
    case Part::leaf: return take_leaf(block);
    case Part::interior: return take_interior(block);
    case Part::slots: return equal_pieces(block.subspan(kNodeHeaderBytes, kSlotsBytes), format::kMapSlotBytes);
    case Part::reverse: return equal_pieces(block.subspan(kNodeHeaderBytes), format::kReverseEntryBytes);
    case Part::free: return equal_pieces(block.subspan(kNodeHeaderBytes), format::segment_record_bytes(segment_blocks));
    case Part::chunk: return take_records(block);
    case Part::superblock:
    case Part::image: break;
  }
  return std::nullopt;
}

bool put_together(Part part, std::span<const Element> elements, std::span<std::byte> block) {
  switch (part) {
    case Part::leaf:
    case Part::interior: return put_keyed(part, elements, block);
    case Part::slots:
    case Part::reverse:
    case Part::free: return put_map(elements, block);
    case Part::chunk: return put_records(elements, block);
    case Part::superblock:
    case Part::image: break;
  }
  return false;
}

Fields fields_of(Part part, const Element& element) {
  switch (part) {
    case Part::leaf: return fields_of_value(element.key.kind, element.value);
    case Part::interior: return fields_of_child(element.value);
    case Part::slots: return fields_of_slot(element.value);
    case Part::reverse: return fields_of_reverse_entry(element.value);
    case Part::free: return fields_of_segment_record(element.value);
    case Part::chunk: return fields_of_record(element.value);
    case Part::superblock:
    case Part::image: break;
  }
  return {};
}

Fields header_fields(Part part, View block) {
  if (part == Part::superblock) return fields_of_superblock(block);
  if (part == Part::chunk) return fields_of_chunk_header(block);
  return fields_of_node_header(block);
}

std::vector<Reference> references_in(Part part, View block) {
  switch (part) {
    case Part::superblock: return references_of_superblock(0);
    case Part::image: return references_of_superblock(kNodeHeaderBytes);
    case Part::leaf: return references_to_snapshots(block);
    case Part::interior: return references_to_children(block);
    case Part::slots: break;
    case Part::reverse:
    case Part::free:
    case Part::chunk: return {};
  }
  std::vector<Reference> all;
  for (std::size_t i = 0, at = kNodeHeaderBytes; i < format::kMapFanout; ++i, at += format::kMapSlotBytes)
    if (get_fixed(block, at, 6)) all.push_back({at, 6, at + 6});
  return all;
}

std::uint32_t seal(Part part, std::span<std::byte> block) {
  if (part == Part::superblock) return seal_at(block, format::superblock_layout::kCrcAt);
  if (part == Part::chunk) return seal_at(block, kNodeCrcAt);
  if (part == Part::image) seal_inside(block);
  seal_at(block, kNodeCrcAt);
  return format::block_crc(block);
}

}  // namespace varve::fuzz
