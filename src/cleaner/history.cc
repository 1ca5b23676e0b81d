#include "cleaner/history.h"

#include <algorithm>

#include "base/types.h"
#include "segments/segment_table.h"

namespace varve::cleaner {

Utilisation utilisation_of(const segments::SegmentTable& segments) {
  Utilisation counts{};
  const std::size_t blocks = segments.geometry().blocks;
  segments.for_each([&](SegmentId, const segments::SegmentInfo& s) {
    if (s.state == segments::SegmentState::used) ++counts[std::min(counts.size() - 1, s.live() * counts.size() / blocks)];
  }, segments::SegmentTable::Which::in_use);
  return counts;
}

void History::keep(std::size_t most) {
  const Lock lock(mutex_);
  most_ = std::min(most, kMost);
  while (rounds_.size() > most_) rounds_.pop_front();
}

std::size_t History::kept() const {
  const Lock lock(mutex_);
  return most_;
}

void History::add(PastRound round) {
  const Lock lock(mutex_);
  if (most_ == 0) return;
  round.number = next_++;
  if (rounds_.size() == most_) rounds_.pop_front();
  rounds_.push_back(std::move(round));
}

std::vector<PastRound> History::rounds() const {
  const Lock lock(mutex_);
  return {rounds_.begin(), rounds_.end()};
}

}  // namespace varve::cleaner
