#include "bound.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace varve::bench {

namespace {

struct Class {
  double count, rate;  // blocks, rate of each
};

// Rates within 1 % of each other make one class.
std::vector<Class> classes_of(std::span<const double> rates) {
  std::vector<double> sorted(rates.begin(), rates.end());
  std::sort(sorted.rbegin(), sorted.rend());
  std::vector<Class> classes;
  for (double rate : sorted) {
    if (classes.empty() || rate < 0.99 * classes.back().rate / classes.back().count) classes.push_back({0, 0});
    classes.back().count += 1;
    classes.back().rate += rate;
  }
  for (Class& c : classes) c.rate /= c.count;
  return classes;
}

// v in (0,1) with (1-v)/v + ln v = y; falls from infinity to 0.
double live_share(double y) {
  double low = 1e-15, high = 1;
  for (int i = 0; i < 80; ++i) {
    const double v = (low + high) / 2;
    ((1 - v) / v + std::log(v) > y ? low : high) = v;
  }
  return (low + high) / 2;
}

double space(double v) { return v > 1 - 1e-9 ? 1 : -std::log(v) / (1 - v); }

double total_space(const std::vector<Class>& classes, double lambda) {
  double sum = 0;
  for (const Class& c : classes) sum += c.count * space(live_share(c.rate / lambda));
  return sum;
}

}  // namespace

double bound(std::span<const double> rates, double utilisation) {
  const auto classes = classes_of(rates);
  const double wanted = static_cast<double>(rates.size()) / utilisation;
  double low = -60, high = 60;  // ln λ: more λ, less space
  for (int i = 0; i < 100; ++i) {
    const double middle = (low + high) / 2;
    (total_space(classes, std::exp(middle)) > wanted ? low : high) = middle;
  }
  double sum = 0;
  for (const Class& c : classes) sum += c.count * c.rate / (1 - live_share(c.rate / std::exp(low)));
  return sum;
}

double fifo_bound(double utilisation) {
  const double rates[] = {1.0};
  return bound(rates, utilisation);
}

double greedy_bound(double utilisation, std::uint32_t segment_blocks) {
  const double b = segment_blocks;
  // (H_b - H_x)/(b - x) falls… as x falls; harmonic numbers of real x by the digamma expansion.
  auto harmonic = [](double x) {
    double shift = 0;
    for (; x < 8; ++x) shift += 1 / (x + 1);
    return std::log(x) + 0.57721566490153286 + 1 / (2 * x) - 1 / (12 * x * x) - shift;
  };
  double low = 0, high = b * (1 - 1e-9);
  for (int i = 0; i < 100; ++i) {
    const double x = (low + high) / 2;
    ((harmonic(b) - harmonic(x)) / (b - x) > 1 / (utilisation * b) ? low : high) = x;
  }
  return b / (b - low);
}

}  // namespace varve::bench
