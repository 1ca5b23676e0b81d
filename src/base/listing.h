// Names for a message: the first of them, and how many more there are.
#pragma once

#include <cstddef>
#include <string>

#include <fmt/format.h>

namespace varve {

// "a, b and 3 more"
template <class Names>
std::string listing(const Names& names, std::size_t most) {
  std::string list;
  std::size_t shown = 0;
  for (const std::string& name : names) {
    if (shown == most) break;
    list += (shown++ ? ", " : "") + name;
  }
  return names.size() > shown ? fmt::format("{} and {} more", list, names.size() - shown) : list;
}

}  // namespace varve
