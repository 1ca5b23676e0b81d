// Forward progress of cleaning, by a strategy's own measure (Round::left): one that moves as much as it gains, or whose gains
// are taken by the nodes that checkpoints write, would go on for ever.
#pragma once

#include <algorithm>
#include <cstdint>

namespace varve::cleaner {

class Patience {
 public:
  // Told of each round what it has left to do. False: give up, the last rounds left no less than the best before them.
  bool lasts(std::uint64_t left) {
    fruitless_ = left < least_ ? 0 : fruitless_ + 1;
    least_ = std::min(least_, left);
    return fruitless_ < kMostFruitless;
  }

 private:
  static constexpr unsigned kMostFruitless = 4;  // in a row
  unsigned fruitless_ = 0;
  std::uint64_t least_ = ~std::uint64_t{0};
};

}  // namespace varve::cleaner
