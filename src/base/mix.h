// Finaliser of splitmix64 (Steele, Lea, Flood 2014): every bit of the result depends on every bit of x; one to one.
#pragma once

#include <cstdint>

namespace varve {

constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

}  // namespace varve
