// A uniform sample of the blocks that were written to each segment, with the log clock of each write (algorithm
// R, Vitter, 1985): memory and time to update are bounded by its size, reading how old the segment's content is on average is
// O(1).
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace varve::cleaner {

class Reservoir {
 public:
  explicit Reservoir(std::size_t capacity) : capacity_(capacity) {}

  // `block` was written at `clock`. Writing a sampled block again changes its time and nothing else.
  void add(std::uint64_t block, std::uint64_t clock, Random& random);
  void clear();

  std::size_t size() const { return entries_.size(); }
  std::uint64_t seen() const { return seen_; }  // different blocks
  double mean_clock() const { return entries_.empty() ? 0 : sum_ / static_cast<double>(entries_.size()); }

 private:
  struct Entry {
    std::uint64_t block, clock;
  };
  void set(Entry& entry, std::uint64_t block, std::uint64_t clock);

  std::size_t capacity_;
  std::vector<Entry> entries_;
  std::uint64_t seen_ = 0;
  double sum_ = 0;  // of the clocks
};

}  // namespace varve::cleaner
