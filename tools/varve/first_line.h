// A fact that the kernel tells in a file of one line, as in /sys and /proc.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>

namespace varve::tool {

// Without blanks and zeros at its end; empty where there is no such file.
inline std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && (line.back() == ' ' || line.back() == '\0')) line.pop_back();
  return line;
}

}  // namespace varve::tool
