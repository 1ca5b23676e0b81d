// Numbers on a command line that must be of a range.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace varve {

// From `least` to `most`. `example` is a value that makes sense, for the message.
template <class Number>
CLI::Validator number_value(Number least, Number most, const char* example) {
  const CLI::Range range(least, most);
  const auto read = [=](std::string& text) -> std::string {
    if (range(text).empty()) return "";
    return fmt::format("'{}': give a number from {} to {}, as {}", text, least, most, example);
  };
  return {read, range.get_description()};
}

}  // namespace varve
