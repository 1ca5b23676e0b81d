// Sizes on a command line, as GNU coreutils read them: K, M, G, T, P, E and KiB, MiB ... are powers of 1024, KB, MB ... of 1000.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <cstdint>
#include <map>
#include <string>
#include <system_error>

namespace varve {

// A number that begins with 0 would be read as octal: 0100M as 64M.
inline void drop_leading_zeros(std::string& text) {
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  while (text.size() > 1 && text[0] == '0' && is_digit(text[1])) text.erase(0, 1);
}

// A whole number with a unit. Not more or less than what there is: a slip there would be dear.
inline CLI::Validator size_value() {
  std::map<std::string, std::uint64_t> units{{"b", 1}};
  std::uint64_t binary = 1, decimal = 1;
  for (const char* prefix : {"k", "m", "g", "t", "p", "e"}) {
    binary *= 1024;
    decimal *= 1000;
    const std::string letter = prefix;
    units[letter] = units[letter + "i"] = units[letter + "ib"] = binary;
    units[letter + "b"] = decimal;
  }
  units[""] = 1;
  const auto read = [units](std::string& text) -> std::string {
    if (text.starts_with('+') || (text.starts_with('-') && text.size() > 1))
      return "'" + text + "': give the size itself, as 20G, and not how much more or less that is";
    drop_leading_zeros(text);
    const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
    const std::string unit = CLI::detail::to_lower(CLI::detail::trim_copy(text.substr(digits)));
    const auto factor = units.find(unit);
    if (digits == 0 || factor == units.end())
      return "'" + text + "' is no size: write a whole number with K, M, G or T, as 1536M";
    std::uint64_t bytes = 0;
    if (std::from_chars(text.data(), text.data() + digits, bytes).ec != std::errc() ||
        __builtin_mul_overflow(bytes, factor->second, &bytes))
      return "'" + text + "' is too big: no size is beyond 16E";
    text = std::to_string(bytes);
    return "";
  };
  return {read, "SIZE"};
}

// The same, and more than nothing.
inline CLI::Validator positive_size_value() {
  const auto read = [any = size_value()](std::string& text) -> std::string {
    const std::string given = text;
    std::string problem = any(text);
    if (problem.empty() && text == "0") problem = "'" + given + "' is no size: give more than 0, as 20G";
    return problem;
  };
  return {read, "SIZE"};
}

// Takes a rate in bytes per second: 10M, 10MB, 10MB/s.
inline CLI::Validator rate_value() {
  const auto read = [size = size_value()](std::string& text) -> std::string {
    const std::string given = text;
    if (text.ends_with("/s")) text.resize(text.size() - 2);
    if (size(text).empty()) return "";
    return "'" + given + "' is no rate: write bytes per second as a whole number with K, M or G, as 10M, or 0 for no limit";
  };
  return {read, "RATE"};
}

}  // namespace varve
