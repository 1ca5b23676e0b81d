// A map as a PNG, with what it shows, where each line begins, and what the colours mean.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "varve/observe/map/palette.h"

namespace varve::tool {

struct PngSize {
  unsigned columns = 256;  // cells a line
  unsigned cell = 4;       // pixels a side
};

// Letters outside of ASCII are drawn as question marks.
Result<std::string> png_of(const DeviceMap& map, const Palette& palette, const std::vector<LegendLine>& legend, const std::string& title,
                           const PngSize& size);

}  // namespace varve::tool
