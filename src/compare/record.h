// One difference between two snapshots, as an answer has it. Records come in the order of keys (format/key.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/item.h"

namespace varve::compare {

enum class BlockState : std::uint8_t { hole = 0, unwritten = 1, data = 2 };

struct EntryValue {
  Ino ino;
  std::uint8_t type = 0;  // DT_*
  std::string name;

  bool operator==(const EntryValue&) const = default;
};

struct Record {
  enum class Kind : std::uint8_t {
    attributes = 1,  // of an inode
    entry = 2,       // of a directory
    blocks = 3,      // file blocks [first, first + length): they are others, or not there on both sides
    xattrs = 4,      // some extended attribute is another
    target = 5,      // of a symlink
  };
  Kind kind = Kind::attributes;
  Ino ino;  // of the inode or directory
  std::optional<format::Attributes> attributes_before{}, attributes_after{};
  std::uint64_t cookie = 0;
  std::optional<EntryValue> entry_before{}, entry_after{};
  std::uint64_t first = 0, length = 0;
  BlockState was = BlockState::hole, is = BlockState::hole;

  bool operator==(const Record&) const = default;
};

Result<EntryValue> decode_entry(std::span<const std::byte> value);  // of a dirent item
void append(const Record& record, format::Bytes& out);
// Errc::corrupt says what does not fit.
Result<std::vector<Record>> decode_records(std::span<const std::byte> bytes);

}  // namespace varve::compare
