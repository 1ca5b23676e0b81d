#include "support/pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/crc32c.h"
#include "base/mix.h"
#include "base/types.h"

namespace varve::test {

namespace {

std::uint64_t pattern_word(std::uint64_t mixed_seed, std::uint64_t index) { return mix64(mixed_seed ^ index) | 0x0101010101010101ULL; }

bool all_zero(std::span<const std::byte> bytes) {
  if (bytes.empty()) return true;
  return bytes[0] == std::byte{0} && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

void fill_pattern(std::uint64_t seed, std::uint64_t position, std::span<std::byte> out) {
  const std::uint64_t mixed_seed = mix64(seed + 0x9E3779B97F4A7C15ULL);
  std::size_t done = 0;
  const auto put_part = [&](std::size_t most) {
    const std::uint64_t word = pattern_word(mixed_seed, (position + done) / 8);
    const std::size_t from = (position + done) % 8;
    const std::size_t count = std::min(most, 8 - from);
    std::memcpy(out.data() + done, reinterpret_cast<const std::byte*>(&word) + from, count);
    done += count;
  };
  if (position % 8 != 0 && !out.empty()) put_part(out.size());
  for (std::uint64_t index = (position + done) / 8; out.size() - done >= 8; ++index, done += 8) {
    const std::uint64_t word = pattern_word(mixed_seed, index);
    std::memcpy(out.data() + done, &word, sizeof(word));
  }
  if (done < out.size()) put_part(out.size() - done);
}

std::vector<std::byte> pattern_bytes(std::uint64_t seed, std::uint64_t position, std::size_t length) {
  std::vector<std::byte> bytes(length);
  fill_pattern(seed, position, bytes);
  return bytes;
}

std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t value) {
  return mix64(hash * 0x9E3779B97F4A7C15ULL + mix64(value + 0x632BE59BD9B4E019ULL));
}

std::uint64_t hash_bytes(std::span<const std::byte> bytes) {
  return (static_cast<std::uint64_t>(crc32c(bytes, 0x5EED)) << 32) | crc32c(bytes);
}

std::uint64_t hash_of_block(std::uint64_t block, std::span<const std::byte> bytes) {
  if (all_zero(bytes)) return 0;
  if (bytes.size() == kBlockSize) return mix_hash(block, crc32c(bytes));
  std::array<std::byte, kBlockSize> whole{};
  std::copy(bytes.begin(), bytes.end(), whole.begin());
  return mix_hash(block, crc32c(whole));
}

}  // namespace varve::test
