#include "models/slc_cache.h"

#include <iterator>

namespace varve::bench {

SlcCache::Place SlcCache::unit_of(std::uint64_t page) {
  const std::uint64_t number = page / caching_.unit_pages;
  if (const auto found = by_number_.find(number); found != by_number_.end()) {
    units_.splice(units_.begin(), units_, found->second);
    return found->second;
  }
  units_.push_front({number, std::vector<bool>(caching_.unit_pages), 0});
  return by_number_[number] = units_.begin();
}

FlashWork SlcCache::write(std::uint64_t first, std::uint64_t pages) {
  FlashWork work;
  for (std::uint64_t page = first; page < first + pages; ++page) {
    while (taken_ >= caching_.pages) work += fold(std::prev(units_.end()));
    const Place unit = unit_of(page);
    unit->has[page % caching_.unit_pages] = true;
    ++unit->taken;
    ++taken_;
    ++work.programmed;
    ++work.cached;
  }
  return work;
}

FlashWork SlcCache::discard(std::uint64_t first, std::uint64_t pages) {
  for (std::uint64_t page = first; page < first + pages; ++page)
    if (const auto found = by_number_.find(page / caching_.unit_pages); found != by_number_.end())
      found->second->has[page % caching_.unit_pages] = false;
  return behind_->discard(first, pages);
}

FlashWork SlcCache::tidy() { return units_.empty() ? behind_->tidy() : fold(std::prev(units_.end())); }

// All that is programmed behind the cache is the device's own doing.
FlashWork SlcCache::fold(Place place) {
  FlashWork work;
  const std::uint64_t base = place->number * caching_.unit_pages;
  for (std::uint64_t from = 0; from < caching_.unit_pages;) {
    std::uint64_t to = from;
    while (to < caching_.unit_pages && place->has[to] == place->has[from]) ++to;
    if (place->has[from]) work += behind_->write(base + from, to - from);
    from = to;
  }
  work.copied = work.programmed;
  ++work.erases;
  taken_ -= place->taken;
  by_number_.erase(place->number);
  units_.erase(place);
  return work;
}

}  // namespace varve::bench
