// How full the last page of the kernel's cache of a listing is.
//
// The kernel keeps a listing that it has seen to its end, and gives it to those that list the directory later. A reader
// that has begun before the directory changed may not find its place in a listing that was kept after that. Then the
// kernel asks the daemon, but for one case. Where the entries fill the last page of the cache, it takes the end of that
// page for the end of the directory (Linux 4.20 to 6.18), and the reader misses names. So such a listing may not be kept,
// nor one of which it is not known. The kernel keeps no listing of that directory then until it forgets the inode: that
// costs time, and nothing else.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

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

// What a listing knows of itself from one reply to the next.
struct ListingPlace {
  PageFill fill{};
  std::uint64_t last = 0;  // fs::DirectoryEntry::last_cookie when it began; positions may have it rounded
  // No other one has the same positions. Where two have, the kernel puts both together, which is as good as one as long as
  // the directory stays the same.
  bool alone = false;

  // Ends it here. `unchanged`: the directory is known to be as it was when it began.
  bool may_be_kept(bool unchanged) const { return (alone || unchanged) && !fill.full(); }
};

// Of listings that take more than one reply. Thread-safe. Where two listings of a directory get in each other's way, or too
// many go on at a time, some are not kept.
class ListingPlaces {
 public:
  struct Stop {
    ListingPosition position;
    PageFill fill;
  };

  // A reply has ended at the last of `stops`; a reader with a small buffer goes on at one before.
  void note(Ino directory, ListingPlace place, bool begins, std::vector<Stop> stops);
  std::optional<ListingPlace> at(Ino directory, ListingPosition position) const;

 private:
  struct Listed {
    Ino directory;
    std::uint64_t noted = 0;  // the oldest makes room
    ListingPlace place;
    std::vector<Stop> stops;
  };

  mutable Mutex mutex_;
  std::array<Listed, 64> listed_ GUARDED_BY(mutex_);
  std::uint64_t notes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::fuse
