#include "cleaner/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace varve::cleaner {

namespace {

constexpr double kStepsPerOctave = 8;

struct Tables {
  std::array<double, 256> interval{};
  std::array<std::uint64_t, 256> rate{};
  Tables() {
    for (unsigned code = 1; code < 256; ++code) {
      interval[code] = std::exp2((code - 1) / kStepsPerOctave);
      rate[code] = static_cast<std::uint64_t>(4294967296.0 / interval[code]);
    }
  }
};
const Tables kTables;

}  // namespace

std::uint8_t encode_interval(double units) {
  const double code = 1 + std::round(kStepsPerOctave * std::log2(std::max(units, 1.0)));
  return static_cast<std::uint8_t>(std::min(code, 255.0));
}

double decode_interval(std::uint8_t code) { return kTables.interval[code]; }

std::uint8_t next_estimate(std::uint8_t code, double interval_units) {
  if (code == 0) return encode_interval(interval_units);
  return encode_interval(0.75 * decode_interval(code) + 0.25 * interval_units);
}

std::uint64_t rate_of(std::uint8_t code) { return kTables.rate[code]; }

}  // namespace varve::cleaner
