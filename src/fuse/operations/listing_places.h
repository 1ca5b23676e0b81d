// How full the last page of the kernel's cache of a listing is.
//
// The kernel keeps a listing that it has seen to its end, and gives it to those that list the directory later. A reader
// that has begun before the directory changed may not find its place in a listing that was kept after that. Then the
// kernel asks the daemon, but for one case: where the entries fill the last page of the cache, it takes the end of that
// page for the end of the directory (Linux 4.20 to 6.18), and the reader misses names. So such a listing may not be kept,
// nor one of which it is not known.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

#include "base/mutex.h"
#include "base/types.h"
#include "fuse/protocol/listing_position.h"

namespace varve::fuse {

class PageFill {
 public:
  void add(std::size_t entry_bytes);  // an entry never crosses into the next page
  bool full() const;

 private:
  std::size_t used_ = 0;
};

// Of listings that take more than one reply: at the place where the newest reply ended. There are few listings at a time;
// where two get in each other's way, one is not kept. Thread-safe.
class ListingPlaces {
 public:
  void note(Ino directory, ListingPosition position, PageFill fill);
  std::optional<PageFill> fill_at(Ino directory, ListingPosition position) const;

 private:
  struct Place {
    Ino directory;
    ListingPosition position;
    PageFill fill;
  };
  static constexpr std::size_t kPlaces = 64;

  mutable Mutex mutex_;
  std::array<Place, kPlaces> places_ GUARDED_BY(mutex_){};
};

}  // namespace varve::fuse
