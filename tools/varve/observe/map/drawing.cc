#include "varve/observe/map/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "varve/observe/status_text.h"

namespace varve::tool {

namespace {

// The ground, and for a sign on it black or white.
void append_colour(std::string& text, const Look& look) {
  const unsigned ink = is_light(look) ? 0 : 255;
  text += fmt::format("\x1b[48;2;{};{};{};38;2;{};{};{}m", look.red, look.green, look.blue, ink, ink, ink);
}

void append_cells(std::string& text, const DeviceMap& map, const Palette& palette, std::size_t begin, std::size_t end,
                  bool colours) {
  std::optional<Look> last;
  for (std::size_t i = begin; i < end; ++i) {
    const Look look = palette.look_of(map.cells[i]);
    if (colours && last != look) append_colour(text, look);
    text += colours && (!palette.has_signs() || look == Palette::empty()) ? ' ' : look.sign;
    last = look;
  }
  if (colours) text += "\x1b[0m";
}

}  // namespace

std::string map_text(const DeviceMap& map, const Palette& palette, std::size_t columns, bool colours) {
  std::string text;
  for (std::size_t begin = 0; begin < map.cells.size(); begin += columns) {
    text += fmt::format("{:>10}  ", size_text((begin * map.blocks_per_cell) << kBlockShift));
    append_cells(text, map, palette, begin, std::min(begin + columns, map.cells.size()), colours);
    text += '\n';
  }
  text += fmt::format("\n{} in segments, {} of it live ({:.1f} %); a cell is {}\n", size_text(map.blocks << kBlockShift),
                      size_text(map.live << kBlockShift),
                      map.blocks ? 100.0 * static_cast<double>(map.live) / static_cast<double>(map.blocks) : 0.0,
                      size_text(map.blocks_per_cell << kBlockShift));
  return text;
}

std::string legend_text(const std::vector<LegendLine>& legend, bool colours, bool with_signs) {
  std::string text;
  for (const LegendLine& line : legend) {
    text += "  ";
    if (colours) append_colour(text, line.look);
    const char sign = !colours || (with_signs && line.look != Palette::empty()) ? line.look.sign : ' ';
    text += colours ? fmt::format("{} \x1b[0m", sign) : std::string(1, sign);
    text += "  " + line.text + '\n';
  }
  return text;
}

}  // namespace varve::tool
