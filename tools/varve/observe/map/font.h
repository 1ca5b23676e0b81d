// Letters for pictures, of ASCII only.
#pragma once

#include <cstdint>

namespace varve::tool {

inline constexpr unsigned kGlyphWidth = 6, kGlyphHeight = 13;

// Is the pixel of this character to be drawn? What is no printable ASCII looks like a question mark.
bool is_ink(char character, unsigned x, unsigned y);

}  // namespace varve::tool
