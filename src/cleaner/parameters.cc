#include "cleaner/parameters.h"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace varve::cleaner {

Result<Parameters> Parameters::parse(std::string_view spelling) {
  Parameters parsed;
  parsed.spelling_ = spelling;
  for (bool first = true;; first = false) {
    const auto colon = spelling.find(':');
    const std::string_view part = spelling.substr(0, colon);
    const auto equals = part.find('=');
    if (first ? part.empty() || equals != part.npos : equals == part.npos || equals == 0)
      return Error(Errc::invalid, fmt::format("'{}': must be name[:key=value]…", parsed.spelling_));
    if (first) parsed.name_ = part;
    else parsed.values_[std::string(part.substr(0, equals))] = part.substr(equals + 1);
    if (colon == spelling.npos) return parsed;
    spelling.remove_prefix(colon + 1);
  }
}

double Parameters::number(std::string_view key, double otherwise, double least, double most) const {
  asked_.emplace(key);
  const auto at = values_.find(key);
  if (at == values_.end()) return otherwise;
  double value = 0;
  const std::string& text = at->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size() && value >= least && value <= most) return value;
  problem_ = fmt::format("'{}': {} must be a number from {} to {}", spelling_, key, least, most);
  return otherwise;
}

std::string_view Parameters::word(std::string_view key, std::initializer_list<std::string_view> allowed) const {
  asked_.emplace(key);
  const auto at = values_.find(key);
  if (at == values_.end()) return *allowed.begin();
  for (std::string_view word : allowed)
    if (word == at->second) return word;
  problem_ = fmt::format("'{}': {} must be one of: {}", spelling_, key, fmt::join(allowed, ", "));
  return *allowed.begin();
}

Status Parameters::check() const {
  if (!problem_.empty()) return Error(Errc::invalid, problem_);
  for (const auto& [key, value] : values_)
    if (!asked_.contains(key)) return Error(Errc::invalid, fmt::format("'{}': knows no {}", spelling_, key));
  return {};
}

}  // namespace varve::cleaner
