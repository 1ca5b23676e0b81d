// What an operation, or a move of the cleaner's, is about to add: to the next chunk, to the next checkpoint, and to what is charged.
// From above: nothing that is let in may find less room than it was promised.
#pragma once

#include <cstddef>
#include <cstdint>

namespace varve::space {

struct Demand {
  std::size_t record_bytes = 0;    // in the next chunk; not more than one holds: recovery believes none that is larger
  std::uint64_t new_blocks = 0;    // of files that own so many more afterwards: charged
  std::uint64_t new_inodes = 0;    // charged
  std::uint64_t payload = 0;       // blocks to be written to the log for it
  std::uint64_t places = 0;        // of the inode file that change: keys, or ends of ranges of them
  std::uint64_t item_bytes = 0;    // that come new there, beyond those of its records
  std::uint64_t evacuated = 0;     // tree nodes that move without a change
  std::uint64_t scattered = 0;     // segments that are written here and there: what comes new there has no neighbours
  std::uint64_t freed = 0;         // blocks that it takes from files without putting others in their place
  bool frees = false;              // a delete: never refused for space, and may take segments that users leave to it

  Demand& operator+=(const Demand& more) {
    record_bytes += more.record_bytes;
    new_blocks += more.new_blocks;
    new_inodes += more.new_inodes;
    payload += more.payload;
    places += more.places;
    item_bytes += more.item_bytes;
    evacuated += more.evacuated;
    scattered += more.scattered;
    freed += more.freed;
    return *this;
  }
  std::uint64_t items() const { return record_bytes + item_bytes; }  // bytes of items, at most: records become items
};

// Of the cleaner: blocks that it moves, from so many places in files: as many, or fewer where they are neighbours. A single changed
// block makes an extent, and what that cuts off another.
inline Demand demand_of_moves(std::uint64_t blocks, std::uint64_t places) {
  constexpr std::uint64_t kItemBytesOfBlock = 40;
  return {.payload = blocks, .places = places, .item_bytes = places * kItemBytesOfBlock};
}

}  // namespace varve::space
