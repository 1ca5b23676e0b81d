// "1 block", "2 blocks".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
  if (number == 1) return fmt::format("1 {}", one);
  return many.empty() ? fmt::format("{} {}s", number, one) : fmt::format("{} {}", number, many);
}

}  // namespace varve
