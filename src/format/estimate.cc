#include "format/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace varve::format {

namespace {

constexpr double kStepsPerOctave = 8;

// 2^63 / 2^(k/8), rounded down: exact on every machine, since `.ffile` keeps sums of them.
constexpr std::array<std::uint64_t, 8> kRates = {
    0x8000000000000000ULL, 0x75606373EE921C97ULL, 0x6BA27E656B4EB57AULL, 0x62B39508AA836D6EULL,
    0x5A827999FCEF3242ULL, 0x52FF6B54D8A89C75ULL, 0x4C1BF828C6DC54B7ULL, 0x45CAE0F1F545EB73ULL};

const std::array<double, 256> kIntervals = [] {
  std::array<double, 256> intervals{};
  for (unsigned code = 1; code < 256; ++code) intervals[code] = std::exp2((code - 1) / kStepsPerOctave);
  return intervals;
}();

}  // namespace

std::uint32_t age_of(std::uint64_t now, std::uint32_t stored) {
  constexpr std::uint32_t kMoment = 1u << 20;  // units
  const std::uint32_t age = static_cast<std::uint32_t>(now) - stored;
  return age > ~std::uint32_t{0} - kMoment ? 0 : age;
}

std::uint8_t encode_interval(double units) {
  const double code = 1 + std::round(kStepsPerOctave * std::log2(std::max(units, 1.0)));
  return static_cast<std::uint8_t>(std::min(code, 255.0));
}

double decode_interval(std::uint8_t code) { return kIntervals[code]; }

std::uint8_t next_estimate(std::uint8_t code, double interval_units) {
  if (code == 0) return encode_interval(interval_units);
  return encode_interval(0.75 * decode_interval(code) + 0.25 * interval_units);
}

std::uint64_t rate_of(std::uint8_t code) {
  if (code == 0) return 0;
  return kRates[(code - 1) % 8] >> (31 + (code - 1) / 8);
}

}  // namespace varve::format
