#include "cleaner/reservoir.h"

#include <algorithm>

namespace varve::cleaner {

void Reservoir::set(Entry& entry, std::uint64_t block, std::uint64_t clock) {
  sum_ += static_cast<double>(clock) - static_cast<double>(entry.clock);
  entry = {block, clock};
}

void Reservoir::add(std::uint64_t block, std::uint64_t clock, Random& random) {
  const auto same = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.block == block; });
  if (same != entries_.end()) return set(*same, block, clock);
  ++seen_;
  if (entries_.size() < capacity_) {
    entries_.push_back({block, 0});
    return set(entries_.back(), block, clock);
  }
  const std::uint64_t at = random.next() % seen_;
  if (at < capacity_) set(entries_[at], block, clock);
}

void Reservoir::clear() {
  entries_.clear();
  seen_ = 0;
  sum_ = 0;
}

}  // namespace varve::cleaner
