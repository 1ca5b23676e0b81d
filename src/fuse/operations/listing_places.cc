#include "fuse/operations/listing_places.h"

#include <algorithm>
#include <utility>

#include "base/page_size.h"

namespace varve::fuse {

namespace {

bool have_same_positions(std::uint64_t last, std::uint64_t other) {
  return ListingPosition{.last = last}.encode() == ListingPosition{.last = other}.encode();
}

}  // namespace

void PageFill::add(std::size_t entry_bytes) {
  used_ = used_ + entry_bytes > kernel_page_bytes() ? entry_bytes : used_ + entry_bytes;
}

bool PageFill::full() const { return used_ == kernel_page_bytes(); }

void ListingPlaces::note(Ino directory, ListingPlace place, bool begins, std::vector<Stop> stops) {
  const Lock lock(mutex_);
  auto listed = std::ranges::find(listed_, directory, &Listed::directory);
  if (listed == listed_.end()) {
    listed = std::ranges::min_element(listed_, {}, &Listed::noted);
    if (begins) place.alone = true;
  } else if (begins) {
    place.alone = !have_same_positions(listed->place.last, place.last);
  }
  *listed = {directory, ++notes_, place, std::move(stops)};
}

std::optional<ListingPlace> ListingPlaces::at(Ino directory, ListingPosition position) const {
  const Lock lock(mutex_);
  const auto listed = std::ranges::find(listed_, directory, &Listed::directory);
  if (listed == listed_.end()) return std::nullopt;
  const auto stop = std::ranges::find(listed->stops, position.encode(), [](const Stop& s) { return s.position.encode(); });
  if (stop == listed->stops.end()) return std::nullopt;
  ListingPlace place = listed->place;
  place.fill = stop->fill;
  return place;
}

}  // namespace varve::fuse
