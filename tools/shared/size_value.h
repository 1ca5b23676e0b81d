// Sizes on a command line, as GNU coreutils read them: K, M, G, T, P, E and KiB, MiB ... are powers of 1024, KB, MB ... of 1000.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <map>
#include <string>

namespace varve {

inline CLI::AsNumberWithUnit size_value() {
  std::map<std::string, std::uint64_t> units{{"b", 1}};
  std::uint64_t binary = 1, decimal = 1;
  for (const char* prefix : {"k", "m", "g", "t", "p", "e"}) {
    binary *= 1024;
    decimal *= 1000;
    const std::string letter = prefix;
    units[letter] = units[letter + "i"] = units[letter + "ib"] = binary;
    units[letter + "b"] = decimal;
  }
  return CLI::AsNumberWithUnit(units, CLI::AsNumberWithUnit::DEFAULT, "SIZE");
}

}  // namespace varve
