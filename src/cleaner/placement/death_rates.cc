#include "cleaner/placement/death_rates.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/mix.h"

namespace varve::cleaner {

DeathRates::DeathRates(double memory, std::size_t most_sampled) : memory_(memory), most_sampled_(most_sampled) {}

// 0 for nothing known; then an octave each, from 1.
unsigned DeathRates::bin(double value) {
  constexpr auto kLast = static_cast<double>(std::uint64_t{1} << (kBins - 2));
  if (value < 1) return 0;
  if (!(value < kLast)) return kBins - 1;
  return static_cast<unsigned>(std::bit_width(static_cast<std::uint64_t>(value)));
}

void DeathRates::count_life(Sampled& block, std::uint64_t until) {
  auto& row = cells_[block.row];
  double from = static_cast<double>(block.counted - block.written);
  const double to = static_cast<double>(until - block.written);
  while (from < to) {
    const unsigned b = bin(from);
    const double end = std::min(to, b == kBins - 1 ? to : std::ldexp(1.0, static_cast<int>(b)));
    row[b].exposure += (end - from) * one_in_;
    from = end;
  }
  block.counted = until;
}

void DeathRates::thin_out() {
  one_in_ *= 2;
  std::erase_if(sample_, [mask = one_in_ - 1](const auto& entry) { return mix64(entry.first) & mask; });
}

void DeathRates::forget(std::uint64_t clock) {
  const double passed = static_cast<double>(clock - std::min(clock, decayed_));
  if (passed < memory_ / 64) return;
  decayed_ = clock;
  const double kept = std::exp(-passed / memory_);
  for (auto& row : cells_)
    for (Cell& cell : row) cell.deaths *= kept, cell.exposure *= kept;
}

void DeathRates::written(const WrittenBlock& block) {
  const Lock lock(mutex_);
  if (block.interval != kUnknown)
    cells_[bin(block.previous_estimate)][bin(static_cast<double>(block.interval))].deaths += block.blocks;
  for (std::uint64_t key = block.key; key < block.key + block.blocks; ++key) {
    if (mix64(key) & (one_in_ - 1)) continue;
    auto [at, fresh] = sample_.try_emplace(key);
    if (!fresh) count_life(at->second, std::max(block.clock, at->second.counted));
    at->second = {block.clock, block.clock, bin(block.estimate)};
  }
  if (sample_.size() > most_sampled_) thin_out();
}

void DeathRates::sweep(std::uint64_t clock) {
  const Lock lock(mutex_);
  forget(clock);
  for (auto& [key, block] : sample_)
    if (clock > block.counted) count_life(block, clock);
}

// Where little was seen, the rate of its interval is assumed with the weight of a few deaths.
double DeathRates::weigh(const Cell& cell, double assumed_interval) const {
  constexpr double kPrior = 4;
  return (cell.deaths + kPrior) / (cell.exposure + kPrior * std::max(assumed_interval, 1.0));
}

double DeathRates::rate(double estimate, double age) const {
  const Lock lock(mutex_);
  return weigh(cells_[bin(estimate)][bin(age)], std::max(estimate, age));
}

double DeathRates::rate_when_new(double estimate) const {
  const Lock lock(mutex_);
  const auto& row = cells_[bin(estimate)];
  Cell sum;
  for (unsigned age = 0; age <= bin(estimate); ++age) {
    sum.deaths += row[age].deaths;
    sum.exposure += row[age].exposure;
  }
  return weigh(sum, estimate > 0 ? estimate : memory_);
}

}  // namespace varve::cleaner
