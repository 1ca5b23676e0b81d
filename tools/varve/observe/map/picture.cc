#include "varve/observe/map/picture.h"

#include <fmt/format.h>
#include <png.h>

#include <algorithm>

#include "base/utf8.h"
#include "varve/observe/map/font.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

namespace {

constexpr unsigned kZoom = 2;  // of letters
constexpr unsigned kLetter = kGlyphWidth * kZoom, kLine = kGlyphHeight * kZoom + 6;
constexpr unsigned kEdge = 12, kScale = 11 * kLetter;  // to the left of the cells: where a line begins
constexpr unsigned kLabelledRows = 32;
constexpr unsigned kLegendColumns = 2;
constexpr Look kPaper{' ', 255, 255, 255}, kInk{' ', 29, 34, 38}, kNothing{' ', 226, 230, 234};

class Canvas {
 public:
  Canvas(unsigned width, unsigned height) : width_(width), height_(height), pixels_(std::size_t{width} * height * 3, 255) {}

  void fill(unsigned left, unsigned top, unsigned width, unsigned height, const Look& look) {
    for (unsigned y = top; y < std::min(top + height, height_); ++y)
      for (unsigned x = left; x < std::min(left + width, width_); ++x) {
        png_byte* pixel = &pixels_[(std::size_t{y} * width_ + x) * 3];
        pixel[0] = look.red, pixel[1] = look.green, pixel[2] = look.blue;
      }
  }
  // Nothing is drawn beyond the right end.
  void write(unsigned left, unsigned top, std::string_view text) {
    for (std::size_t at = 0; at < text.size(); left += kLetter) {
      const std::size_t length = std::max<std::size_t>(printable_length(text, at), 1);
      letter(left, top, length == 1 ? text[at] : '?');
      at += length;
    }
  }
  Result<std::string> png() const {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    image.width = width_;
    image.height = height_;
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t length = 0;
    std::string bytes;
    if (png_image_write_get_memory_size(image, length, 0, pixels_.data(), 0, nullptr)) {
      bytes.resize(length);
      if (png_image_write_to_memory(&image, bytes.data(), &length, 0, pixels_.data(), 0, nullptr)) return bytes;
    }
    return Error(Errc::io, fmt::format("no picture can be made: {}", image.message));
  }

 private:
  void letter(unsigned left, unsigned top, char character) {
    for (unsigned y = 0; y < kGlyphHeight; ++y)
      for (unsigned x = 0; x < kGlyphWidth; ++x)
        if (is_ink(character, x, y)) fill(left + x * kZoom, top + y * kZoom, kZoom, kZoom, kInk);
  }

  const unsigned width_, height_;
  std::vector<png_byte> pixels_;
};

// The end of a path and the size behind it tell more than its beginning.
std::string shortened(const std::string& text, std::size_t room) {
  return text.size() <= room ? text : "..." + text.substr(text.size() - (room - 3));
}

// On paper nothing is pale, and on a terminal it is dark.
const Look& on_paper(const Look& look) { return look == Palette::empty() ? kNothing : look; }

void draw_cells(Canvas& canvas, const DeviceMap& map, const Palette& palette, const PngSize& size, unsigned top) {
  for (std::size_t i = 0; i < map.cells.size(); ++i) {
    const auto column = static_cast<unsigned>(i % size.columns), row = static_cast<unsigned>(i / size.columns);
    const unsigned y = top + row * size.cell;
    canvas.fill(kEdge + kScale + column * size.cell, y, size.cell, size.cell, on_paper(palette.look_of(map.cells[i])));
    if (column == 0 && row % kLabelledRows == 0)
      canvas.write(kEdge, y, fmt::format("{:>10}", size_text((i * map.blocks_per_cell) << kBlockShift)));
  }
}

void draw_legend(Canvas& canvas, const std::vector<LegendLine>& legend, unsigned width, unsigned top) {
  const unsigned column_width = width / kLegendColumns;
  const std::size_t rows = (legend.size() + kLegendColumns - 1) / kLegendColumns;
  for (std::size_t i = 0; i < legend.size(); ++i) {
    const unsigned left = kEdge + static_cast<unsigned>(i / rows) * column_width, y = top + static_cast<unsigned>(i % rows) * kLine;
    canvas.fill(left, y, kLine - 6, kLine - 6, on_paper(legend[i].look));
    canvas.write(left + kLine + 4, y, shortened(legend[i].text, (column_width - kLine - 4) / kLetter - 1));
  }
}

}  // namespace

Result<std::string> png_of(const DeviceMap& map, const Palette& palette, const std::vector<LegendLine>& legend, const std::string& title,
                           const PngSize& size) {
  const auto rows = static_cast<unsigned>(std::max<std::size_t>((map.cells.size() + size.columns - 1) / size.columns, 1));
  const unsigned width = 2 * kEdge + kScale + size.columns * size.cell, top = kEdge + 2 * kLine + kEdge;
  const unsigned below = top + rows * size.cell + kEdge;
  const auto legend_rows = static_cast<unsigned>((legend.size() + kLegendColumns - 1) / kLegendColumns);
  Canvas canvas(width, std::max(below + legend_rows * kLine + kEdge, top + kLine));
  canvas.write(kEdge, kEdge, title);
  canvas.write(kEdge, kEdge + kLine,
               fmt::format("{} in segments, {} live; a cell is {}, a line {}", size_text(map.blocks << kBlockShift),
                           size_text(map.live << kBlockShift), size_text(map.blocks_per_cell << kBlockShift),
                           size_text((map.blocks_per_cell * size.columns) << kBlockShift)));
  draw_cells(canvas, map, palette, size, top);
  draw_legend(canvas, legend, width - 2 * kEdge, below);
  return canvas.png();
}

}  // namespace varve::tool
