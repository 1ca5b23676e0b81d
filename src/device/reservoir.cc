#include "device/reservoir.h"

#include <algorithm>

namespace varve::device {

Reservoir::Entry* Reservoir::find(std::uint32_t block) {
  const auto same = std::ranges::find(entries_, block, &Entry::block);
  return same == entries_.end() ? nullptr : &*same;
}

void Reservoir::set(Entry& entry, std::uint32_t block, std::uint32_t clock) {
  sum_ += clock;
  sum_ -= entry.clock;
  entry = {block, clock};
}

void Reservoir::add(std::uint32_t block, std::uint32_t clock, Random& random) {
  if (Entry* same = find(block)) return set(*same, block, clock);
  ++seen_;
  if (entries_.size() < capacity_) {
    entries_.push_back({block, 0});
    return set(entries_.back(), block, clock);
  }
  const std::uint64_t at = random.next() % seen_;
  if (at < capacity_) set(entries_[at], block, clock);
}

void Reservoir::rewritten(std::uint32_t block, std::uint32_t clock) {
  if (Entry* same = find(block)) set(*same, block, clock);
}

void Reservoir::clear() {
  entries_.clear();
  seen_ = 0;
  sum_ = 0;
}

}  // namespace varve::device
