#include "models/fast_ftl.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace varve::bench {

namespace {

constexpr std::size_t kReserved = 2;  // spare blocks that are no log: the one for writes in a row, the one to merge into

std::size_t logs_of(std::uint64_t pages, const HybridMapping& mapping) {
  const double spare = std::ceil(static_cast<double>(pages) / static_cast<double>(mapping.block_pages) * mapping.spare);
  return std::max(static_cast<std::size_t>(spare), kReserved + 1) - kReserved;
}

}  // namespace

FastFtl::FastFtl(std::uint64_t pages, const HybridMapping& mapping, bool used)
    : mapping_(mapping), most_logs_(logs_of(pages, mapping)), log_of_(pages, -1) {
  has_content_.resize((pages + mapping.block_pages - 1) / mapping.block_pages * mapping.block_pages);
  std::fill_n(has_content_.begin(), pages, used);
  programmed_ = has_content_;
  data_.resize(has_content_.size() / mapping_.block_pages);
  std::iota(data_.begin(), data_.end(), 0U);
  erases_.resize(data_.size() + most_logs_ + kReserved);
  free_.resize(erases_.size() - data_.size());
  std::iota(free_.begin(), free_.end(), static_cast<std::uint32_t>(data_.size()));
}

std::uint64_t FastFtl::most_erases_of_a_block() const { return *std::max_element(erases_.begin(), erases_.end()); }

std::uint32_t FastFtl::take_free() {
  const std::uint32_t taken = free_.front();
  free_.pop_front();
  return taken;
}

void FastFtl::erase(std::uint32_t chip_block) {
  ++erases_[chip_block];
  free_.push_back(chip_block);
}

void FastFtl::replace_data(std::uint64_t block, std::uint32_t by) {
  erase(data_[block]);
  data_[block] = by;
}

FlashWork FastFtl::write(std::uint64_t first, std::uint64_t pages) {
  FlashWork work;
  for (std::uint64_t page = first; page < first + pages; ++page) work += write_page(page);
  return work;
}

FlashWork FastFtl::write_page(std::uint64_t page) {
  const std::uint64_t block = page / mapping_.block_pages, offset = page % mapping_.block_pages;
  FlashWork work;
  const bool same = sequential_ && sequential_->block == block, goes_on = same && sequential_->written == offset;
  if (!goes_on && (same || (sequential_ && offset == 0 && programmed_[page]))) work += close_sequential();
  if (!goes_on && !programmed_[page]) {
    programmed_[page] = has_content_[page] = true;
    ++work.programmed;
    return work;
  }
  if (goes_on || offset == 0) {
    make_stale(page);
    if (!goes_on) sequential_ = Sequential{block, take_free(), 0};
    ++sequential_->written;
    ++work.programmed;
    has_content_[page] = true;
    if (sequential_->written == mapping_.block_pages) work += close_sequential();
    return work;
  }
  work += write_to_log(page);
  return work;
}

// A full one takes the place of the data block; the rest of another one is copied behind what it has.
FlashWork FastFtl::close_sequential() {
  const Sequential closed = *sequential_;
  sequential_.reset();
  FlashWork work;
  work.copied = valid_in(closed.block, closed.written);
  work.programmed = work.copied;
  work.erases = 1;
  replace_data(closed.block, closed.chip_block);
  renew(closed.block, closed.written);
  return work;
}

FlashWork FastFtl::write_to_log(std::uint64_t page) {
  FlashWork work;
  if (logs_.empty() || logs_.back().pages.size() == mapping_.block_pages) {
    if (logs_.size() >= most_logs_) work += merge_oldest();
    logs_.push_back({take_free(), {}});
  }
  make_stale(page);
  logs_.back().pages.push_back(page);
  log_of_[page] = first_log_ + static_cast<std::int64_t>(logs_.size()) - 1;
  has_content_[page] = true;
  ++work.programmed;
  return work;
}

FlashWork FastFtl::merge_oldest() {
  FlashWork work;
  for (std::size_t i = 0; i < logs_.front().pages.size(); ++i)
    if (const std::uint64_t page = logs_.front().pages[i]; page != kStale) work += merge(page / mapping_.block_pages);
  erase(logs_.front().chip_block);
  logs_.pop_front();
  ++first_log_;
  ++work.erases;
  return work;
}

// The newest copy of each page of a block, into a free one.
FlashWork FastFtl::merge(std::uint64_t block) {
  if (sequential_ && sequential_->block == block) return close_sequential();  // which has all of its pages then
  FlashWork work;
  work.copied = valid_in(block, 0);
  work.programmed = work.copied;
  work.erases = 1;
  replace_data(block, take_free());
  renew(block, 0);
  return work;
}

// Its data block has the newest of all pages now, the first so many programmed whatever they hold.
void FastFtl::renew(std::uint64_t block, std::uint64_t programmed) {
  const std::uint64_t first = block * mapping_.block_pages;
  for (std::uint64_t page = first; page < end_of(block); ++page) {
    if (page >= first + programmed) make_stale(page);
    programmed_[page] = page < first + programmed || has_content_[page];
  }
}

std::uint64_t FastFtl::end_of(std::uint64_t block) const { return std::min((block + 1) * mapping_.block_pages, log_of_.size()); }

void FastFtl::make_stale(std::uint64_t page) {
  if (log_of_[page] < 0) return;
  auto& pages = logs_[static_cast<std::size_t>(log_of_[page] - first_log_)].pages;
  *std::find(pages.rbegin(), pages.rend(), page) = kStale;
  log_of_[page] = -1;
}

std::uint64_t FastFtl::valid_in(std::uint64_t block, std::uint64_t from) const {
  const auto base = has_content_.begin() + static_cast<std::ptrdiff_t>(block * mapping_.block_pages);
  const auto end = base + static_cast<std::ptrdiff_t>(mapping_.block_pages);
  return static_cast<std::uint64_t>(std::count(base + static_cast<std::ptrdiff_t>(from), end, true));
}

FlashWork FastFtl::discard(std::uint64_t first, std::uint64_t pages) {
  for (std::uint64_t page = first; page < first + pages; ++page) {
    make_stale(page);
    has_content_[page] = false;
  }
  return {};
}

}  // namespace varve::bench
