// What a placement has learned, as the superblock keeps it (docs/format.md, group_centres): a hash of the placement's name, then
// numbers. Another placement finds nothing for it there.
#pragma once

#include <array>

#include "cleaner/placement.h"
#include "format/superblock.h"

namespace varve::cleaner {

using LearnedState = decltype(format::Superblock::group_centres);

LearnedState keep_learned(const Placement& placement);
void restore_learned(Placement& placement, const LearnedState& state);

}  // namespace varve::cleaner
