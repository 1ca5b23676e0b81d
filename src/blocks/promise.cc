#include "blocks/promise.h"

#include <array>
#include <cmath>
#include <cstdint>

namespace varve::blocks {

namespace {

constexpr std::size_t kPieces = 32, kPieceBytes = 64;
constexpr std::size_t kSampleBytes = kPieces * kPieceBytes;
constexpr double kMostEntropy = 7.6;  // bits in a byte; bench/blocks shows what is missed and what is tried in vain

using Counts = std::array<std::uint16_t, 256>;

// Two tables, so that a byte need not wait for the count of an equal one before it.
void count(std::span<const std::byte> bytes, Counts& even, Counts& odd) {
  std::size_t i = 0;
  for (; i + 1 < bytes.size(); i += 2) {
    ++even[std::to_integer<std::uint8_t>(bytes[i])];
    ++odd[std::to_integer<std::uint8_t>(bytes[i + 1])];
  }
  if (i < bytes.size()) ++even[std::to_integer<std::uint8_t>(bytes[i])];
}

// n log2 n, for each count that a sample can have.
const std::array<float, kSampleBytes + 1>& weights() {
  static const auto kWeights = [] {
    std::array<float, kSampleBytes + 1> table{};
    for (std::size_t n = 2; n < table.size(); ++n) {
      const auto count = static_cast<double>(n);
      table[n] = static_cast<float>(count * std::log2(count));
    }
    return table;
  }();
  return kWeights;
}

}  // namespace

double sampled_entropy(std::span<const std::byte> content) {
  Counts even{}, odd{};
  if (content.size() <= kSampleBytes) {
    count(content, even, odd);
  } else {
    const std::size_t stride = (content.size() - kPieceBytes) / (kPieces - 1);
    for (std::size_t piece = 0; piece < kPieces; ++piece) count(content.subspan(piece * stride, kPieceBytes), even, odd);
  }
  const auto& weight = weights();
  double sum = 0;
  std::size_t bytes = 0;
  for (std::size_t value = 0; value < even.size(); ++value) {
    const std::size_t n = even[value] + odd[value];
    sum += weight[n];
    bytes += n;
  }
  return bytes == 0 ? 0 : std::log2(static_cast<double>(bytes)) - sum / static_cast<double>(bytes);
}

bool is_promising(std::span<const std::byte> content) { return sampled_entropy(content) < kMostEntropy; }

}  // namespace varve::blocks
