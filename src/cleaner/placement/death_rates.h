// How soon blocks die, learned from those that did: the rate of rewrites for every pair of (estimated interval, age), both
// in octaves. Deaths are counted in full; how many blocks were there to die is known from a sample that is followed from
// write to write. So the rate of what has outlived its estimate is not guessed but measured. With a steady workload it is
// about that of its age. After a hot set has moved on it is that of the coldest.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>

#include "base/mutex.h"
#include "cleaner/placement.h"

namespace varve::cleaner {

// Thread-safe. Times are in blocks of log clock.
class DeathRates {
 public:
  // `memory`: what lies further back counts for less (exponentially). `most_sampled`: blocks followed at one time.
  DeathRates(double memory, std::size_t most_sampled);

  void written(const WrittenBlock& block);
  // The sample's living members; now and then, so that those that never die count, too.
  void sweep(std::uint64_t clock);

  // Rewrites per block of log clock of a block with this estimate and age; above 0.
  double rate(double estimate, double age) const;
  // Of one just written, over the time it is expected to live.
  double rate_when_new(double estimate) const;

 private:
  static constexpr unsigned kBins = 40;
  struct Cell {
    double deaths = 0;
    double exposure = 0;  // of the sample, scaled to all
  };
  struct Sampled {
    std::uint64_t written = 0;
    std::uint64_t counted = 0;  // its life is in the cells up to here
    unsigned row = 0;
  };
  static unsigned bin(double value);
  void count_life(Sampled& block, std::uint64_t until) REQUIRES(mutex_);
  void forget(std::uint64_t clock) REQUIRES(mutex_);
  void thin_out() REQUIRES(mutex_);
  double weigh(const Cell& cell, double assumed_interval) const;

  const double memory_;
  const std::size_t most_sampled_;
  mutable Mutex mutex_;
  std::array<std::array<Cell, kBins>, kBins> cells_ GUARDED_BY(mutex_){};  // [estimate][age]
  std::unordered_map<std::uint64_t, Sampled> sample_ GUARDED_BY(mutex_);
  unsigned one_in_ GUARDED_BY(mutex_) = 1;  // power of two
  std::uint64_t decayed_ GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::cleaner
