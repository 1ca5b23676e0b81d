// Counting what a part of a file owns, a little in each attempt: in a large file with many changes it is much to read and to keep.
#pragma once

#include "fs/attempt.h"

namespace varve::fs {

// Goes on to `to` from where the attempt before came to, and lets go what is behind. Would block, wanting nothing, where it is
// enough for one attempt.
Status count_some(Attempt& attempt, const store::Inode& inode, store::OwnedSoFar& so_far, std::uint64_t to)
    REQUIRES_SHARED(inode.mutex);

// Blocks in [from, to). If others change the file between attempts it may be fewer than there are, never more (see
// store::InodeDelta::blocks_change), and after some restarts none at all (Count::given_up).
Result<std::uint64_t> count_in_steps(Attempt& attempt, const store::Inode& inode, std::uint64_t from, std::uint64_t to)
    REQUIRES_SHARED(inode.mutex);

}  // namespace varve::fs
