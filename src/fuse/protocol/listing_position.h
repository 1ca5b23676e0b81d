// Where a listing of a directory is, in the 63 bits that the kernel and the C library carry from one request to the next.
#pragma once

#include <cstdint>
#include <optional>

namespace varve::fuse {

// Names get ever greater cookies. So a listing that went on to the greatest of all would never end while its reader makes or renames
// a file for each that it gets. It ends at the greatest one there was when it began; as there
// are no open directories here, that has to travel in its positions.
struct ListingPosition {
  std::uint64_t cookie = 0;  // of the entry before
  std::uint64_t last = 0;    // where the listing ends
  bool may_be_kept = false;  // at the end only: the kernel may keep the listing (fuse/operations/listing_places.h)

  // A `last` of more than 17 bits comes back rounded up, always to the same; cookies beyond 40 bits have no end.
  std::uint64_t encode() const;
  // None: such a position was never handed out. No number below the greatest one that names an entry means an end, so that
  // a program that seeks to anywhere finds something, as in other filesystems.
  static std::optional<ListingPosition> decode(std::uint64_t bits);
  bool at_end() const { return cookie >= last; }
};

}  // namespace varve::fuse
