// The target of blocks/: bytes that are said to be a coded unit.
#pragma once

#include "fuzz/target.h"

namespace varve::fuzz {

void units(Input input);
Seeds unit_seeds();

}  // namespace varve::fuzz
