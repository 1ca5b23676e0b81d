// Content of units for tests and fuzz targets: such that becomes smaller, and such that does not.
#pragma once

#include <cstddef>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/types.h"

namespace varve::test {

using Content = std::vector<std::byte>;

inline Content noise(std::uint32_t blocks, std::uint64_t seed = 1) {
  SeededRandom random(seed);
  Content content(blocks * kBlockSize);
  for (std::byte& byte : content) byte = static_cast<std::byte>(random.next());
  return content;
}

// Words of a few kinds in a random order.
inline Content text(std::uint32_t blocks, std::uint64_t seed = 1) {
  static constexpr std::string_view kWords[] = {"the log ", "and a tree, ", "of blocks\n", "where ", "0x1f, ", "return ", "    ", "part "};
  SeededRandom random(seed);
  Content content;
  while (content.size() < blocks * kBlockSize) {
    for (const char c : kWords[random.next() % std::size(kWords)]) content.push_back(static_cast<std::byte>(c));
  }
  content.resize(blocks * kBlockSize);
  return content;
}

}  // namespace varve::test
