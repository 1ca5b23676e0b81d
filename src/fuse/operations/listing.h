// Directory entries packed into a reply, in the plain form or with attributes; and the end of a listing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "fs/filesystem.h"
#include "fuse/operations/block_counts.h"
#include "fuse/operations/listing_places.h"
#include "fuse/protocol/listing_position.h"

namespace varve::fuse {

class Request;

class Listing {
 public:
  // `from`: none: from the start. `place`: what is known of the listing there; none: nothing.
  Listing(std::span<std::byte> space, bool plus, std::optional<ListingPosition> from, std::optional<ListingPlace> place)
      : space_(space), plus_(plus), from_(from), place_there_(place) {
    clear();
  }
  // Whose entries they are; else the newest state's.
  void of_snapshot(Serial snapshot) { snapshot_ = snapshot; }
  // What is known of the blocks of files that are being written. It must outlive this.
  void count_blocks(const BlockCounts& blocks) { blocks_ = &blocks; }

  // False: no room for it, or behind the end.
  bool add(const fs::DirectoryEntry& entry);
  void clear();

  bool plus() const { return plus_; }
  bool begins() const { return !from_; }
  std::uint64_t cookie() const { return from_ ? from_->cookie : 0; }
  std::span<const std::byte> bytes() const { return space_.first(used_); }

  // Where a reader may go on, the last one being where this reply ends. Empty: nothing is known, or nothing is in it.
  const std::vector<ListingPlaces::Stop>& stops() const { return stops_; }
  const std::optional<ListingPlace>& place() const { return place_; }
  bool ends() const { return used_ == 0 || next_.at_end(); }
  ListingPosition next() const { return next_; }
  // Where nothing is in it.
  bool may_be_kept() const { return place_ && place_->may_be_kept(false); }

 private:
  ListingPosition position_after(const fs::DirectoryEntry& entry) const;

  std::span<std::byte> space_;
  bool plus_;
  std::optional<ListingPosition> from_;
  std::optional<ListingPlace> place_there_;
  Serial snapshot_;
  const BlockCounts* blocks_ = nullptr;

  std::size_t used_ = 0;
  std::optional<std::uint64_t> last_;  // cookie
  std::optional<ListingPlace> place_;
  std::vector<ListingPlaces::Stop> stops_;
  ListingPosition next_;
};

// The kernel keeps a listing that ends with an empty reply. A few bytes that are no entry end it, too, and are not kept.
void reply_end_of_listing(Request& r, bool may_be_kept);
// Replies with what is in the listing; with the end if that is nothing.
void reply_listing(Request& r, const Listing& listing);

}  // namespace varve::fuse
