// A map as text for a terminal, and as a PNG.
#pragma once

#include <string>

#include "base/result.h"
#include "varve/map/palette.h"

namespace varve::tool {

// `columns` cells a line. With colours: each cell a space on its colour (24-bit SGR sequences).
std::string map_text(const DeviceMap& map, const Palette& palette, std::size_t columns, bool colours);
std::string legend_text(const std::vector<LegendLine>& legend, bool colours);

struct PngSize {
  unsigned columns = 256;  // cells a line
  unsigned cell = 4;       // pixels a side
};
Result<std::string> png_of(const DeviceMap& map, const Palette& palette, const PngSize& size);

}  // namespace varve::tool
