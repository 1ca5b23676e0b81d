// The names in a directory of a snapshot, as an answer has them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "format/item.h"

namespace varve::compare {

struct Entries {
  Ino parent;  // of the directory; the root: itself
  struct Entry {
    std::string name;
    Ino ino;
    std::uint8_t type = 0;  // DT_*
  };
  std::vector<Entry> entries;
};

void append_entry(const Entries::Entry& entry, format::Bytes& out);
// `bytes` begin with the number of the parent. Errc::corrupt.
Result<Entries> decode_entries(std::span<const std::byte> bytes);

}  // namespace varve::compare
