// Bytes that are a function of (seed, position): contents and attribute values are remembered as a seed, not as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace varve::test {

// No byte of a pattern is zero, so data can always be told from a hole. Patterns of different seeds differ in (nearly) every byte, so a
// block in the wrong place or from an older write shows.
void fill_pattern(std::uint64_t seed, std::uint64_t position, std::span<std::byte> out);
std::vector<std::byte> pattern_bytes(std::uint64_t seed, std::uint64_t position, std::size_t length);

// Mixes `value` into `hash`; order matters.
std::uint64_t mix_hash(std::uint64_t hash, std::uint64_t value);
std::uint64_t hash_bytes(std::span<const std::byte> bytes);

// Sum of these over the blocks of a file is the hash of its content: zero blocks count nothing, so holes and written
// zeros are the same, as they are for a reader. `bytes` shorter than a block stands for a block that ends in zeros.
std::uint64_t hash_of_block(std::uint64_t block, std::span<const std::byte> bytes);

}  // namespace varve::test
