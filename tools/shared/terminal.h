// The terminal, as far as a tool has one: its size, what it understands, and text that fits it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace varve {

struct TerminalSize {
  std::size_t columns = 80, rows = 24;
};

// 80 x 24 where it is not known.
TerminalSize size_of_terminal(int descriptor);

// Escapes are understood there. False where it is no terminal, and for one that only prints: TERM is `dumb`, or is not set.
bool moves_cursor(int descriptor);

// The same, unless NO_COLOR (no-color.org) is set to something.
bool shows_colours(int descriptor);

// UTF-8 text of one line, at most so many columns of it: a character takes one.
std::string fitted(std::string_view text, std::size_t columns);

// Each line of the text in as many lines as it takes: cut between words, and those that follow are moved in by two columns.
std::vector<std::string> wrapped(std::string_view text, std::size_t columns);

// Lines in pages of at most `rows`, cut at empty lines where that leaves no page half empty. At least one page.
std::vector<std::vector<std::string>> pages_of(const std::vector<std::string>& lines, std::size_t rows);

}  // namespace varve
