// Lengths of time as people write them: "30s", "10m", "1h", "2d".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace varve {

// In seconds. Without a unit the number is seconds. Errc::invalid: no such thing, or more than 100 years.
Result<std::uint64_t> parse_duration(std::string_view text);
// In the largest unit that divides it: "1h", "90m", "45s".
std::string duration_text(std::uint64_t seconds);
// For people: rounded to the largest unit of which it has two. "10d", "119m".
std::string rough_duration_text(std::uint64_t seconds);

}  // namespace varve
