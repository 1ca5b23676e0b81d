// Blocks of metadata, taken apart into what they consist of (items, children, slots, records) and put together again.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "format/node.h"
#include "fuzz/structure/fields.h"

namespace varve::fuzz {

enum class Part : std::uint8_t { superblock, leaf, interior, slots, reverse, free, image, chunk };

// An item with its key, a child with its own, or a record of a map or of the log, which have none.
struct Element {
  format::Key key;
  Bytes value;

  bool empty() const;  // a slot or a record of a map that says nothing
};

// `block`: whole, as long as the part is. Nothing where the bytes do not decode, as after mutations of single bytes.
std::optional<std::vector<Element>> take_apart(Part part, View block, std::uint32_t segment_blocks);
// Keeps the header but for counts and first key. False, and nothing is changed, where they do not fit. Keys that do not ascend are written
// as they are.
bool put_together(Part part, std::span<const Element> elements, std::span<std::byte> block);

Fields fields_of(Part part, const Element& element);
Fields header_fields(Part part, View block);  // of the block itself

// Calls visit(place of the address, its bytes, place of the CRC) for each reference to a node that stands in the block.
struct Reference {
  std::size_t address_at, address_bytes, crc_at;
};
std::vector<Reference> references_in(Part part, View block);

// Makes the block's own checksums right, and returns what references to it hold: of a chunk, what the next one holds.
std::uint32_t seal(Part part, std::span<std::byte> block);

}  // namespace varve::fuzz
