// What a damaged node says of itself. Nothing vouches for it.
#pragma once

#include <cstddef>
#include <span>

#include "format/key.h"

namespace varve::format {

// `block`: a whole one. The least key where it does not even look like a node.
Key unproven_first_key(std::span<const std::byte> block);

}  // namespace varve::format
