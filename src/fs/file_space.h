// The space that a part of a file takes: counting and reserving it, a little in each attempt. In a large file with many changes it is
// much to read and to keep.
#pragma once

#include "fs/inode_util.h"

namespace varve::fs {

// Blocks in [from, to). If others change the file between attempts it may be fewer than there are, never more (see
// changes::InodeDelta::owned), and after some restarts none at all (Count::given_up).
Result<std::uint64_t> count_in_steps(Attempt& attempt, const changes::Inode& inode, std::uint64_t from, std::uint64_t to)
    REQUIRES_SHARED(inode.mutex);

// Makes holes of blocks [from, to) unwritten extents, one window after the other. Says whether that was the last one: else another
// attempt goes on there. Every one has been admitted, with what an inode's attributes need. no_space before anything has changed,
// if the space for all of them is not there and that can be told.
Result<bool> allocate_some(Attempt& attempt, changes::Inode& inode, std::uint64_t from, std::uint64_t to) REQUIRES(inode.mutex);

}  // namespace varve::fs
