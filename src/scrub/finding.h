// What a scrub has to say about a place on the device.
#pragma once

#include <cstdint>
#include <string>

#include "format/node.h"

namespace varve::scrub {

struct Finding {
  enum class Kind : std::uint8_t { superblock, node, data };

  Kind kind = Kind::data;
  BlockAddr address;         // on the device, the first
  std::uint64_t blocks = 1;  // consecutive ones on the device, and in the file
  std::string error;         // what is wrong with them

  Ino ino;                       // data: the file
  std::uint64_t file_block = 0;  // data: the first
  format::TreeId tree{};         // node
  std::uint8_t level = 0;        // node
  format::Key first, bound;      // node: everything from `first` up to `bound` hangs on it; the same: nobody knows

  // In what only snapshots hold, the newest that has it; what the filesystem in use has, too, is named by that alone.
  std::string snapshot;          // empty: not in a snapshot
  Serial snapshot_serial;
  std::uint64_t snapshots = 0;   // how many have it

  bool is_in_snapshot() const { return snapshots > 0; }
};

const char* name_of(Finding::Kind kind);
// One line for a log: place, error and what it costs.
std::string to_text(const Finding& finding);

}  // namespace varve::scrub
