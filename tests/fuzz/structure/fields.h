// The fields of everything that the format stores: where each stands in its bytes, and what it means. Mutations of whole images change
// one field at a time, to values that a program would not write.
//
// All of it takes any bytes: a structure that is cut short has the fields that fit.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "format/item.h"
#include "format/key.h"

namespace varve::fuzz {

using format::Bytes;
using View = std::span<const std::byte>;

enum class Wire : std::uint8_t { fixed, varint, text };
// Of a number, so that one of the image's own can take its place.
enum class Meaning : std::uint8_t { plain, flags, address, ino, crc, clock, serial };

struct Field {
  Wire wire = Wire::fixed;
  Meaning meaning = Meaning::plain;
  std::size_t at = 0, size = 0;  // bytes
  std::uint64_t number = 0;      // unless it is a text
};
using Fields = std::vector<Field>;

Fields fields_of_value(format::ItemKind kind, View value);  // of an item of either tree
Fields fields_of_record(View record);                       // kind and body of a log's record, without its length
Fields fields_of_child(View child);                         // address, CRC, number of file blocks
Fields fields_of_slot(View slot);
Fields fields_of_reverse_entry(View record);
Fields fields_of_segment_record(View record);
Fields fields_of_node_header(View block);
Fields fields_of_chunk_header(View block);
Fields fields_of_superblock(View block);

// Replaces the field's number; the bytes become longer or shorter where it is a varint. Numbers too large for the field are cut.
void put_number(Bytes& bytes, const Field& field, std::uint64_t number);
void put_fixed(std::span<std::byte> bytes, std::size_t at, std::size_t size, std::uint64_t number);
std::uint64_t get_fixed(View bytes, std::size_t at, std::size_t size);

}  // namespace varve::fuzz
