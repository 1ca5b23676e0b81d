#include "models/bast_ftl.h"

#include <algorithm>

namespace varve::bench {

BastFtl::BastFtl(std::uint64_t pages, const LogBlockMapping& mapping, bool used)
    : mapping_(mapping), has_content_((pages + mapping.block_pages - 1) / mapping.block_pages * mapping.block_pages) {
  std::fill_n(has_content_.begin(), pages, used);
}

FlashWork BastFtl::write(std::uint64_t first, std::uint64_t pages) {
  FlashWork work;
  for (std::uint64_t page = first; page < first + pages; ++page)
    work += write_page(page / mapping_.block_pages, page % mapping_.block_pages);
  return work;
}

FlashWork BastFtl::write_page(std::uint64_t block, std::uint64_t page) {
  FlashWork work;
  Place log = std::find_if(logs_.begin(), logs_.end(), [block](const LogBlock& one) { return one.block == block; });
  if (log != logs_.end() && log->pages.size() == mapping_.block_pages) {
    work += merge(log);
    log = logs_.end();
  }
  if (log == logs_.end()) {
    if (logs_.size() >= mapping_.log_blocks) work += merge(std::prev(logs_.end()));
    logs_.push_front({block, {}, true});
    log = logs_.begin();
  }
  logs_.splice(logs_.begin(), logs_, log);
  log->in_row = log->in_row && page == log->pages.size();
  log->pages.push_back(page);
  has_content_[block * mapping_.block_pages + page] = true;
  ++work.programmed;
  if (log->in_row && log->pages.size() == mapping_.block_pages) work += merge(log);  // it takes the place of the data block
  return work;
}

// A log block in a row becomes the data block, once the rest has been copied behind it (switch or partial merge). Any other one is merged
// with the data block into a third one, and two are erased.
FlashWork BastFtl::merge(Place place) {
  FlashWork work;
  const auto base = has_content_.begin() + static_cast<std::ptrdiff_t>(place->block * mapping_.block_pages);
  const auto from = base + static_cast<std::ptrdiff_t>(place->in_row ? place->pages.size() : 0);
  work.copied = static_cast<std::uint64_t>(std::count(from, base + static_cast<std::ptrdiff_t>(mapping_.block_pages), true));
  work.programmed = work.copied;
  work.erases = place->in_row ? 1 : 2;
  logs_.erase(place);
  return work;
}

FlashWork BastFtl::discard(std::uint64_t first, std::uint64_t pages) {
  const auto begin = has_content_.begin() + static_cast<std::ptrdiff_t>(first);
  std::fill(begin, begin + static_cast<std::ptrdiff_t>(pages), false);
  return {};
}

}  // namespace varve::bench
