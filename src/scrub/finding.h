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
  format::Key first, bound;      // node: everything from `first` up to `bound` hangs on it
};

const char* name_of(Finding::Kind kind);
// One line for a log: place, error and what it costs.
std::string to_text(const Finding& finding);

}  // namespace varve::scrub
