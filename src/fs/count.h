// Counting what a part of a file owns.
#pragma once

#include "fs/engine.h"

namespace varve::fs {

// Blocks in [from, to), counted on where the attempt before came to: in a large file with many changes it is much to read and to
// keep. With the inode locked. If others change the file between attempts it may be fewer than there are, never more (see
// meta::InodeDelta::blocks_change), and after some restarts none at all (Count::given_up).
Result<std::uint64_t> count_in_steps(Attempt& attempt, const meta::Inode& inode, std::uint64_t from, std::uint64_t to);

}  // namespace varve::fs
