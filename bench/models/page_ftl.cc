#include "models/page_ftl.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace varve::bench {

PageFtl::PageFtl(std::uint64_t pages, const PageMapping& mapping, bool used) : mapping_(mapping) {
  const std::uint64_t addressed = (pages + mapping.block_pages - 1) / mapping.block_pages;
  const auto spare = static_cast<std::uint64_t>(std::ceil(static_cast<double>(addressed) * mapping.spare));
  const std::uint64_t count = addressed + std::max<std::uint64_t>(spare, kLeastFree + 2);
  place_of_.assign(pages, kNone);
  page_at_.assign(count * mapping.block_pages, kNone);
  blocks_.resize(count);
  lists_.assign(mapping.block_pages + 1, kNone);
  for (std::uint64_t block = count; block-- > 0;) free_.push_back(static_cast<std::uint32_t>(block));
  if (used) write(0, pages);
}

FlashWork PageFtl::write(std::uint64_t first, std::uint64_t pages) {
  FlashWork work;
  for (std::uint64_t page = first; page < first + pages; ++page) {
    ++writes_;
    give_up(static_cast<std::uint32_t>(page));
    put(static_cast<std::uint32_t>(page), host_, work);
    while (free_.size() < kLeastFree) collect(work);
  }
  return work;
}

FlashWork PageFtl::discard(std::uint64_t first, std::uint64_t pages) {
  for (std::uint64_t page = first; page < first + pages; ++page) give_up(static_cast<std::uint32_t>(page));
  return {};
}

FlashWork PageFtl::flush() {
  FlashWork work;
  const std::uint64_t written = writes_ - flushed_;
  flushed_ = writes_;
  if (written) work.programmed = (mapping_.program_pages - written % mapping_.program_pages) % mapping_.program_pages + mapping_.map_pages;
  return work;
}

void PageFtl::put(std::uint32_t page, Frontier& frontier, FlashWork& work) {
  if (frontier.block == kNone) {
    frontier = {free_.back(), 0};
    free_.pop_back();
  }
  const auto place = static_cast<std::uint32_t>(frontier.block * mapping_.block_pages + frontier.next);
  place_of_[page] = place;
  page_at_[place] = page;
  Block& block = blocks_[frontier.block];
  ++block.valid;
  block.changed = writes_;
  ++work.programmed;
  if (++frontier.next < mapping_.block_pages) return;
  block.full = true;
  list(frontier.block);
  frontier.block = kNone;
}

void PageFtl::give_up(std::uint32_t page) {
  const std::uint32_t place = place_of_[page];
  if (place == kNone) return;
  place_of_[page] = page_at_[place] = kNone;
  const auto at = static_cast<std::uint32_t>(place / mapping_.block_pages);
  Block& block = blocks_[at];
  if (block.full) unlist(at);
  --block.valid;
  block.changed = writes_;
  if (block.full) list(at);
}

void PageFtl::collect(FlashWork& work) {
  const std::uint32_t chosen = victim();
  unlist(chosen);
  Block& block = blocks_[chosen];
  block.full = false;
  const std::uint64_t first = chosen * mapping_.block_pages;
  for (std::uint64_t place = first; place < first + mapping_.block_pages; ++place) {
    const std::uint32_t page = page_at_[place];
    if (page == kNone) continue;
    page_at_[place] = kNone;
    put(page, copies_, work);
    ++work.copied;
  }
  block.valid = 0;
  ++block.erases;
  ++work.erases;
  free_.push_back(chosen);
}

std::uint32_t PageFtl::victim() const {
  if (mapping_.policy == VictimPolicy::greedy) {
    for (const std::uint32_t first : lists_)
      if (first != kNone) return first;
  }
  std::uint32_t best = kNone;
  double most = -1;
  for (std::uint32_t at = 0; at < blocks_.size(); ++at) {
    const Block& block = blocks_[at];
    if (!block.full) continue;
    const double used = static_cast<double>(block.valid) / static_cast<double>(mapping_.block_pages);
    const double score = block.valid == 0 ? std::numeric_limits<double>::max()
                                          : static_cast<double>(writes_ - block.changed + 1) * (1 - used) / (2 * used);
    if (score > most) {
      most = score;
      best = at;
    }
  }
  return best;
}

void PageFtl::list(std::uint32_t at) {
  Block& block = blocks_[at];
  std::uint32_t& first = lists_[block.valid];
  block.previous = kNone;
  block.next = first;
  if (first != kNone) blocks_[first].previous = at;
  first = at;
}

void PageFtl::unlist(std::uint32_t at) {
  const Block& block = blocks_[at];
  if (block.previous != kNone)
    blocks_[block.previous].next = block.next;
  else
    lists_[block.valid] = block.next;
  if (block.next != kNone) blocks_[block.next].previous = block.previous;
}

std::uint64_t PageFtl::most_erases_of_a_block() const {
  std::uint64_t most = 0;
  for (const Block& block : blocks_) most = std::max<std::uint64_t>(most, block.erases);
  return most;
}

}  // namespace varve::bench
