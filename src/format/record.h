// Records of the chain: absolute, idempotent changes. A chunk's records are the net effect of the operations since the
// chunk before it; applied in their order to the state at that point they give the state after its last operation.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "format/item.h"

namespace varve::format {

struct SetAttributes {  // everything but `blocks`, which merges keep
  Ino ino;
  Attributes attributes;
};
struct FreeInode {  // and everything that is keyed by it
  Ino ino;
};
struct SetOrphan {
  Ino ino;
};
struct ClearOrphan {
  Ino ino;
};
struct SetDirent {
  Ino directory;
  std::uint64_t cookie = 0;
  Dirent entry;
};
struct DeleteDirent {
  Ino directory;
  std::uint64_t cookie = 0;
  std::string_view name;
};
struct SetXattr {
  Ino ino;
  std::string_view name;
  std::span<const std::byte> value;
};
struct DeleteXattr {
  Ino ino;
  std::string_view name;
};
struct SetSymlink {
  Ino ino;
  std::string_view target;
};
// File blocks [first, first + crcs) stand at address…; 1…kMaxExtentBlocks of them.
struct MapBlocks {
  Ino ino;
  std::uint64_t first = 0;
  BlockAddr address;
  std::uint32_t clock = 0;
  std::uint8_t estimate = 0;
  bool moved = false;  // by a cleaner: content and clock are unchanged
  std::vector<std::uint32_t> crcs;
};
// File blocks [from, to) read as zeros from now on; unwritten: and are allocated.
struct ClearRange {
  Ino ino;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  bool unwritten = false;
};

// The file block at `block` begins with these bytes from now on, 1…kMaxLoggedTail of them, and zeros follow. It has no block of the device.
struct SetTail {
  Ino ino;
  std::uint64_t block = 0;
  std::span<const std::byte> bytes;
};

using Record = std::variant<SetAttributes, FreeInode, SetOrphan, ClearOrphan, SetDirent, DeleteDirent, SetXattr,
                            DeleteXattr, SetSymlink, MapBlocks, ClearRange, SetTail>;

// Appends: kind u8 (1 + index in Record), body length varint, body. Returns bytes appended.
std::size_t encode_record(const Record& record, Bytes& out);

// Calls visit for each record, in order; views in a record live only during the call. Stops at the first error.
Status decode_records(std::span<const std::byte> bytes, const std::function<Status(const Record&)>& visit);

}  // namespace varve::format
