#include "base/duration.h"

#include <charconv>

#include <fmt/format.h>

namespace varve {

namespace {

struct Unit {
  char letter;
  std::uint64_t seconds;
};
constexpr Unit kUnits[] = {{'d', 86'400}, {'h', 3'600}, {'m', 60}, {'s', 1}};
constexpr std::uint64_t kMost = 100 * 366 * 86'400ULL;

}  // namespace

Result<std::uint64_t> parse_duration(std::string_view text) {
  const Error wrong(Errc::invalid, fmt::format("'{}' is no length of time: write it as 30s, 10m, 1h or 2d", text));
  std::uint64_t number = 0, unit = 1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return wrong;
  const std::string_view letter = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!letter.empty()) {
    unit = 0;
    for (const Unit& one : kUnits)
      if (letter.size() == 1 && letter[0] == one.letter) unit = one.seconds;
  }
  if (unit == 0 || number > kMost / unit) return wrong;
  return number * unit;
}

std::string duration_text(std::uint64_t seconds) {
  for (const Unit& unit : kUnits)
    if (seconds >= unit.seconds && seconds % unit.seconds == 0) return fmt::format("{}{}", seconds / unit.seconds, unit.letter);
  return fmt::format("{}s", seconds);
}

std::string rough_duration_text(std::uint64_t seconds) {
  for (const Unit& unit : kUnits)
    if (seconds >= 2 * unit.seconds) return fmt::format("{}{}", (seconds + unit.seconds / 2) / unit.seconds, unit.letter);
  return fmt::format("{}s", seconds);
}

}  // namespace varve
