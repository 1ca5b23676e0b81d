// Where the blocks of a file stand, as the newest checkpoint says, and what has not been replaced since. For the thread that
// runs checkpoints: the trees do not change while it looks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cleaner/mover.h"

namespace varve::cleaner {

struct FilePart {
  std::vector<LiveBlock> blocks;  // in the order of the file; holes and what was never written have none
  std::uint64_t next = 0;         // where the next part begins
  bool last = false;              // there is nothing from `next` on
};

// From file block `from` on, at most `most` blocks that stand on the device.
Result<FilePart> read_layout(store::Store& store, Ino ino, std::uint64_t from, std::size_t most);

// Pieces of consecutive blocks, in the file and on the device. A hole in the file does not make two of one.
std::uint64_t count_fragments(std::span<const LiveBlock> blocks);

}  // namespace varve::cleaner
