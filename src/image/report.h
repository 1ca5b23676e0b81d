// The report says what an image of a filesystem's metadata has, and what it has not.
#pragma once

#include <cstdint>

namespace varve::image {

struct Report {
  std::uint64_t nodes = 0;         // of trees, the superblock's image among them
  std::uint64_t damaged = 0;       // of them, those that are not what they should be; what is below them is not there
  std::uint64_t left_out = 0;      // not there: damaged, and may hold names or content
  std::uint64_t unreadable = 0;    // not there: the device does not give them
  std::uint64_t log_blocks = 0;    // headers of chunks, which say what has changed since the checkpoint
  bool log_is_damaged = false;     // there is more of it than was copied
  std::uint64_t superblocks = 0;
};

}  // namespace varve::image
