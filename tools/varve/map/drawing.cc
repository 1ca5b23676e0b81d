#include "varve/map/drawing.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "varve/status_text.h"

namespace varve::tool {

namespace {

void append_colour(std::string& text, const Look& look) {
  text += fmt::format("\x1b[48;2;{};{};{}m", look.red, look.green, look.blue);
}

void append_cells(std::string& text, const DeviceMap& map, const Palette& palette, std::size_t begin, std::size_t end,
                  bool colours) {
  std::optional<Look> last;
  for (std::size_t i = begin; i < end; ++i) {
    const Look look = palette.look_of(map.cells[i]);
    if (colours && last != look) append_colour(text, look);
    text += colours ? ' ' : look.sign;
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

std::string legend_text(const std::vector<LegendLine>& legend, bool colours) {
  std::string text;
  for (const LegendLine& line : legend) {
    text += "  ";
    if (colours) append_colour(text, line.look);
    text += colours ? "  \x1b[0m" : std::string(1, line.look.sign);
    text += "  " + line.text + '\n';
  }
  return text;
}

Result<std::string> png_of(const DeviceMap& map, const Palette& palette, const PngSize& size) {
  const std::size_t rows = std::max<std::size_t>((map.cells.size() + size.columns - 1) / size.columns, 1);
  const std::size_t width = std::size_t{size.columns} * size.cell, height = rows * size.cell;
  std::vector<png_byte> pixels(width * height * 3, 255);
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    const Look look = palette.look_of(map.cells[i]);
    for (std::size_t y = i / size.columns * size.cell; y < (i / size.columns + 1) * size.cell; ++y) {
      png_byte* pixel = &pixels[(y * width + i % size.columns * size.cell) * 3];
      for (unsigned x = 0; x < size.cell; ++x, pixel += 3) {
        pixel[0] = look.red;
        pixel[1] = look.green;
        pixel[2] = look.blue;
      }
    }
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(width);
  image.height = static_cast<png_uint_32>(height);
  image.format = PNG_FORMAT_RGB;
  png_alloc_size_t length = 0;
  std::string bytes;
  if (png_image_write_get_memory_size(image, length, 0, pixels.data(), 0, nullptr)) {
    bytes.resize(length);
    if (png_image_write_to_memory(&image, bytes.data(), &length, 0, pixels.data(), 0, nullptr)) return bytes;
  }
  return Error(Errc::io, fmt::format("no picture can be made: {}", image.message));
}

}  // namespace varve::tool
