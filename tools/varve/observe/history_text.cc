#include "varve/observe/history_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace varve::tool {

namespace {

// A character for each 5 % of live share, higher for more segments. Logarithmic: few nearly empty ones matter as well.
std::string shape(const std::vector<std::uint64_t>& counts) {
  static constexpr const char* kLevels[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::uint64_t most = counts.empty() ? 0 : *std::ranges::max_element(counts);
  std::string text;
  for (const std::uint64_t count : counts) {
    const double level = count ? 1 + 7 * std::log1p(static_cast<double>(count)) / std::log1p(static_cast<double>(most)) : 0;
    text += kLevels[static_cast<std::size_t>(level)];
  }
  return text;
}

}  // namespace

std::string history_heading() {
  return fmt::format("{:>7} {:>12} {:>7}  |{:<20}| {:>7} {:>9}  {}\n", "round", "log clock", "clean", "0 %  live share 100 %", "emptied",
                     "moved", "by");
}

std::string history_line(const Json& round) {
  const auto number = [&round](const char* key) { return round.value(key, std::uint64_t{0}); };
  const auto word = [&round](const char* key) { return round.value(key, std::string()); };
  return fmt::format("{:>7} {:>12} {:>7}  |{}| {:>7} {:>9}  {} {}/{}{}", number("round"), number("log_clock"), number("clean_segments"),
                     shape(round.value("utilisation", std::vector<std::uint64_t>())), number("emptied_segments"),
                     number("written_blocks"), word("strategy"), word("policy"), word("placement"),
                     round.value("waited_for", false) ? ", waited for" : "");
}

}  // namespace varve::tool
