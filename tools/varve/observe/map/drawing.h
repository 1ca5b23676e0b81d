// A map as text for a terminal.
#pragma once

#include <string>

#include "varve/observe/map/palette.h"

namespace varve::tool {

// `columns` cells a line. With colours: each cell on its ground (24-bit SGR sequences), with its sign where colours alone may not tell.
std::string map_text(const DeviceMap& map, const Palette& palette, std::size_t columns, bool colours);
std::string legend_text(const std::vector<LegendLine>& legend, bool colours, bool with_signs);

}  // namespace varve::tool
