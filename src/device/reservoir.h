// A uniform sample of the blocks that were written to a segment, with the log clock of each write (algorithm R,
// Vitter, 1985). Memory and time to update are bounded by its size. Reading how old the segment's content is on average is
// O(1).
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace varve::device {

class Reservoir {
 public:
  explicit Reservoir(std::size_t capacity) : capacity_(capacity) {}

  // `block` of the segment was written at `clock`. Writing a sampled block again changes its time and nothing else.
  void add(std::uint32_t block, std::uint32_t clock, Random& random);
  // What `block` held was written anew somewhere else: its time, if it is in the sample.
  void rewritten(std::uint32_t block, std::uint32_t clock);
  void clear();

  std::size_t size() const { return entries_.size(); }
  std::uint64_t seen() const { return seen_; }  // different blocks
  double mean_clock() const { return entries_.empty() ? 0 : static_cast<double>(sum_) / static_cast<double>(entries_.size()); }

 private:
  struct Entry {
    std::uint32_t block, clock;
  };
  Entry* find(std::uint32_t block);
  void set(Entry& entry, std::uint32_t block, std::uint32_t clock);

  std::size_t capacity_;
  std::vector<Entry> entries_;
  std::uint64_t seen_ = 0;
  std::uint64_t sum_ = 0;  // of the clocks
};

}  // namespace varve::device
