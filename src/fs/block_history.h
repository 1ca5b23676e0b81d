// What is known of the versions that a write replaces, and what follows for the new ones: their estimate of the time until
// they are written again, and the group they are written to.
#pragma once

#include <span>

#include "fs/file_content.h"

namespace varve::fs {

// Looks up what `owned` does not know yet in nodes that are in memory; never waits, never fails. Afterwards counts of live
// blocks are the better for it, too.
void look_up_cached(Attempt& attempt, const changes::Inode& inode, std::uint64_t first, Ownership& owned);

// Gives the blocks of one write their estimate and group; `old` and `data` of each are set. What is written at once stays
// together: a file written in large pieces is read in large pieces.
void place_blocks(Attempt& attempt, const changes::Inode& inode, std::span<changes::StageBlock> blocks, std::uint64_t clock);

}  // namespace varve::fs
