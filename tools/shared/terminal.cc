#include "shared/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace varve {

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }

std::size_t columns_of(std::string_view text) { return static_cast<std::size_t>(std::ranges::count_if(text, begins_character)); }

// The bytes of the first so many characters.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (; at < text.size(); ++at)
    if (begins_character(text[at]) && columns-- == 0) break;
  return at;
}

void wrap_line(std::string_view line, std::size_t columns, std::vector<std::string>& out) {
  constexpr std::string_view kIndent = "  ";
  std::string_view indent;
  while (columns_of(line) + indent.size() > columns) {
    const std::size_t most = bytes_of(line, columns - indent.size());
    const std::size_t begin = std::min(line.find_first_not_of(' '), line.size());
    std::size_t space = line.rfind(' ', most);
    if (space == line.npos || space <= begin) space = most;  // one long word
    std::string_view shown = line.substr(0, space);
    shown.remove_suffix(shown.size() - std::min(shown.find_last_not_of(' ') + 1, shown.size()));
    out.push_back(std::string(indent) + std::string(shown));
    line.remove_prefix(space);
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    indent = kIndent;
    if (line.empty()) return;
  }
  out.push_back(std::string(indent) + std::string(line));
}

}  // namespace

TerminalSize size_of_terminal(int descriptor) {
  winsize size{};
  TerminalSize found;
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0) return found;
  if (size.ws_col) found.columns = size.ws_col;
  if (size.ws_row) found.rows = size.ws_row;
  return found;
}

bool moves_cursor(int descriptor) {
  const char* const kind = std::getenv("TERM");
  return kind && *kind && std::string_view(kind) != "dumb" && ::isatty(descriptor);
}

bool shows_colours(int descriptor) {
  const char* const none = std::getenv("NO_COLOR");
  return (!none || !*none) && moves_cursor(descriptor);
}

std::string fitted(std::string_view text, std::size_t columns) { return std::string(text.substr(0, bytes_of(text, columns))); }

std::vector<std::string> wrapped(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  columns = std::max<std::size_t>(columns, 10);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    wrap_line(text.substr(0, end), columns, lines);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::vector<std::vector<std::string>> pages_of(const std::vector<std::string>& lines, std::size_t rows) {
  rows = std::max<std::size_t>(rows, 1);
  std::vector<std::vector<std::string>> pages;
  auto begin = lines.begin();
  while (begin != lines.end()) {
    while (begin != lines.end() && begin->empty() && !pages.empty()) ++begin;  // no page begins with an empty line
    auto end = begin + static_cast<std::ptrdiff_t>(std::min<std::size_t>(rows, static_cast<std::size_t>(lines.end() - begin)));
    if (end != lines.end() && !end->empty())
      for (auto gap = end; gap - begin > static_cast<std::ptrdiff_t>(rows / 2); --gap)
        if ((gap - 1)->empty()) {
          end = gap;
          break;
        }
    if (begin != end) pages.emplace_back(begin, end);
    begin = end;
  }
  if (pages.empty()) pages.emplace_back();
  return pages;
}

}  // namespace varve
