#include "models/block_ftl.h"

#include <algorithm>

namespace varve::bench {

namespace {

std::uint64_t rounded_up(std::uint64_t value, std::uint64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

BlockFtl::BlockFtl(std::uint64_t pages, const BlockMapping& mapping, bool used)
    : mapping_(mapping), has_content_(rounded_up(pages, mapping.unit_pages)) {
  std::fill_n(has_content_.begin(), pages, used);
}

FlashWork BlockFtl::write(std::uint64_t first, std::uint64_t pages) {
  FlashWork work;
  while (pages > 0) {
    const std::uint64_t unit = first / mapping_.unit_pages, from = first % mapping_.unit_pages;
    const std::uint64_t to = std::min(from + pages, mapping_.unit_pages);
    work += write_in_unit(unit, from, to);
    first += to - from;
    pages -= to - from;
  }
  return work;
}

BlockFtl::Place BlockFtl::find(std::uint64_t unit) {
  return std::find_if(open_.begin(), open_.end(), [unit](const Open& open) { return open.unit == unit; });
}

FlashWork BlockFtl::write_in_unit(std::uint64_t unit, std::uint64_t from, std::uint64_t to) {
  FlashWork work;
  Place place = find(unit);
  if (place != open_.end() && from < place->to) {  // backwards: it begins anew in another block
    work += close(place);
    place = open_.end();
  }
  if (place == open_.end()) {
    if (open_.size() >= mapping_.open_units) work += close(std::prev(open_.end()));
    open_.push_front({unit, from, from});
    place = open_.begin();
  } else {
    work += copy(unit, place->to, from);
    open_.splice(open_.begin(), open_, place);
  }
  work.programmed += rounded_up(to, mapping_.program_pages) - from / mapping_.program_pages * mapping_.program_pages;
  place->to = to;
  const auto base = has_content_.begin() + static_cast<std::ptrdiff_t>(unit * mapping_.unit_pages);
  std::fill(base + static_cast<std::ptrdiff_t>(from), base + static_cast<std::ptrdiff_t>(to), true);
  if (to == mapping_.unit_pages) work += close(place);
  return work;
}

FlashWork BlockFtl::close(Place place) {
  FlashWork work = copy(place->unit, 0, place->from);
  work += copy(place->unit, place->to, mapping_.unit_pages);
  ++work.erases;
  open_.erase(place);
  return work;
}

FlashWork BlockFtl::copy(std::uint64_t unit, std::uint64_t from, std::uint64_t to) const {
  const auto base = has_content_.begin() + static_cast<std::ptrdiff_t>(unit * mapping_.unit_pages);
  FlashWork work;
  work.copied = static_cast<std::uint64_t>(
      std::count(base + static_cast<std::ptrdiff_t>(from), base + static_cast<std::ptrdiff_t>(to), true));
  work.programmed = work.copied;
  return work;
}

FlashWork BlockFtl::discard(std::uint64_t first, std::uint64_t pages) {
  const auto begin = has_content_.begin() + static_cast<std::ptrdiff_t>(first);
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(pages), false);
  return {};
}

}  // namespace varve::bench
