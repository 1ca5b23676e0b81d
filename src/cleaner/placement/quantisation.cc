#include "cleaner/placement/quantisation.h"

#include <algorithm>
#include <cmath>

namespace varve::cleaner {

namespace {

std::vector<double> by_count(std::span<const double> sorted, std::size_t groups) {
  std::vector<double> centres;
  for (std::size_t g = 0; g < groups; ++g) {
    const std::size_t from = sorted.size() * g / groups, to = sorted.size() * (g + 1) / groups;
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += sorted[i];
    centres.push_back(sum / static_cast<double>(to - from));
  }
  return centres;
}

std::vector<double> by_range(std::span<const double> sorted, std::size_t groups) {
  const double width = (sorted.back() - sorted.front()) / static_cast<double>(groups);
  std::vector<double> centres;
  for (std::size_t g = 0; g < groups; ++g) centres.push_back(sorted.front() + (static_cast<double>(g) + 0.5) * width);
  return centres;
}

// One round; a centre nobody is near to stays. False: nothing moved.
bool move_to_means(std::span<const double> sorted, std::vector<double>& centres) {
  std::vector<double> sums(centres.size());
  std::vector<std::size_t> counts(centres.size());
  for (double h : sorted) {
    const std::size_t g = nearest(centres, h);
    sums[g] += h;
    ++counts[g];
  }
  bool moved = false;
  for (std::size_t g = 0; g < centres.size(); ++g) {
    if (!counts[g]) continue;
    const double mean = sums[g] / static_cast<double>(counts[g]);
    moved |= mean != centres[g];
    centres[g] = mean;
  }
  return moved;
}

}  // namespace

std::size_t nearest(std::span<const double> centres, double hotness) {
  std::size_t best = 0;
  for (std::size_t g = 1; g < centres.size(); ++g)
    if (std::abs(centres[g] - hotness) < std::abs(centres[best] - hotness)) best = g;
  return best;
}

std::vector<double> quantise(Quantiser kind, std::span<const double> hotness, std::size_t groups,
                             std::span<const double> before) {
  constexpr int kRounds = 3;
  std::vector<double> sorted(hotness.begin(), hotness.end());
  std::sort(sorted.begin(), sorted.end());
  if (sorted.empty()) return {before.begin(), before.end()};
  if (sorted.size() <= groups) return sorted;
  if (kind == Quantiser::equal_range) return by_range(sorted, groups);
  if (kind == Quantiser::equal_count) return by_count(sorted, groups);
  std::vector<double> centres(before.begin(), before.end());
  if (centres.size() != groups) centres = by_count(sorted, groups);
  for (int round = 0; round < kRounds && move_to_means(sorted, centres); ++round) continue;
  std::sort(centres.begin(), centres.end());
  return centres;
}

}  // namespace varve::cleaner
