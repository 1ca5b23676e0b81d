#include "cleaner/strategy/power_source.h"

#include <filesystem>
#include <fstream>

namespace varve::cleaner {

namespace {

std::string word_in(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::string word;
  in >> word;
  return word;
}

}  // namespace

Power read_power(const std::string& folder) {
  std::error_code error;
  bool discharging = false;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const std::filesystem::path& supply = at->path();
    const std::string type = word_in(supply / "type");
    if (type == "Battery") {
      // Those of mice and keyboards say "Device".
      discharging |= word_in(supply / "status") == "Discharging" && word_in(supply / "scope") != "Device";
    } else if (word_in(supply / "online") == "1") {
      return Power::mains;
    }
  }
  return discharging ? Power::battery : Power::mains;
}

}  // namespace varve::cleaner
