#include "base/mounts.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <utility>

namespace varve {

std::vector<Mount> mounts(const std::string& of) {
  std::ifstream table(of);
  std::vector<Mount> found;
  for (std::string line; std::getline(table, line);)
    if (auto mount = parse_mount(line)) found.push_back(*std::move(mount));
  return found;
}

// "36 35 98:0 /root /directory options optional… - type source options"
std::optional<Mount> parse_mount(const std::string& line) {
  std::istringstream words(line);
  std::string word;
  Mount mount;
  words >> mount.id >> word >> mount.device >> mount.root >> mount.directory;
  while (words >> word && word != "-") {
  }
  if (!(words >> mount.type >> mount.source >> mount.options)) return {};
  for (std::string* text : {&mount.root, &mount.directory, &mount.source}) *text = unescape_octal(*text);
  return mount;
}

std::string unescape_octal(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out.push_back(static_cast<char>(std::strtoul(text.substr(i + 1, 3).c_str(), nullptr, 8)));
      i += 3;
    } else {
      out.push_back(text[i]);
    }
  }
  return out;
}

}  // namespace varve
