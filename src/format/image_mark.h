// How an image of metadata is known, as `varve image` makes them (src/image).
#pragma once

#include "format/superblock.h"

namespace varve::format {

// No block of a file is there.
inline bool is_image(const Superblock& super) { return (super.features.incompat & kIncompatImage) != 0; }
// One with other names: its name hashes are not those of its names, and nobody has the key any more.
inline bool has_other_names(const Superblock& super) { return is_image(super) && super.hash_key == decltype(super.hash_key){}; }

}  // namespace varve::format
