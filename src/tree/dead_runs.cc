#include "tree/dead_runs.h"

#include "base/invariant.h"

namespace varve::tree {

namespace {

bool is_live(std::span<const std::byte> bits, std::uint32_t index) { return std::to_integer<unsigned>(bits[index / 8]) >> (index % 8) & 1; }

}  // namespace

void DeadRuns::add(BlockAddr start, std::uint32_t blocks, std::span<const std::byte> before, std::span<const std::byte> now, Which which) {
  MEMORY_INVARIANT(now.size() * 8 >= blocks && before.size() >= now.size());
  const auto skipped = static_cast<std::uint32_t>((start.v + before_) % unit_);
  bool goes_on = false;
  for (std::uint64_t unit = skipped ? unit_ - skipped : 0; unit + unit_ <= blocks; unit += unit_) {
    const auto first = static_cast<std::uint32_t>(unit);
    bool free = true, news = which == Which::all;
    for (std::uint32_t i = first; free && i < first + unit_; ++i) {
      free = !is_live(now, i);
      news = news || is_live(before, i);
    }
    const bool goes = free && news;
    if (goes) put(start + first, unit_, goes_on);
    goes_on = goes;
  }
}

void DeadRuns::put(BlockAddr start, std::uint32_t blocks, bool goes_on) {
  if (goes_on && !runs_.empty() && runs_.back().end() == start) runs_.back().blocks += blocks;
  else if (runs_.size() < kMost) runs_.push_back({start, blocks});
}

}  // namespace varve::tree
