#include "fuse/operations/listing_places.h"

#include <unistd.h>

namespace varve::fuse {

namespace {

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace

void PageFill::add(std::size_t entry_bytes) {
  used_ = used_ + entry_bytes > page_bytes() ? entry_bytes : used_ + entry_bytes;
}

bool PageFill::full() const { return used_ == page_bytes(); }

void ListingPlaces::note(Ino directory, ListingPosition position, PageFill fill) {
  const Lock lock(mutex_);
  places_[directory.v % kPlaces] = {directory, position, fill};
}

std::optional<PageFill> ListingPlaces::fill_at(Ino directory, ListingPosition position) const {
  const Lock lock(mutex_);
  const Place& place = places_[directory.v % kPlaces];
  if (place.directory != directory || place.position.encode() != position.encode()) return std::nullopt;
  return place.fill;
}

}  // namespace varve::fuse
