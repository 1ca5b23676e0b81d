// Reserving space for a part of a file.
#pragma once

#include "fs/attempt.h"

namespace varve::fs {

// Makes holes of blocks [from, to) unwritten extents, one window after the other. Says whether that was the last one: else
// another attempt goes on there. Every one has been admitted, with what an inode's attributes need. no_space before anything
// has changed, if the space for all of them is not there and that can be told.
Result<bool> allocate_some(Attempt& attempt, store::Inode& inode, std::uint64_t from, std::uint64_t to) REQUIRES(inode.mutex);

}  // namespace varve::fs
