// What else than Varve a device says it holds, by the marks that others write at its start.
//
// For a caller that finds no superblock there: a device that has been given to something else meanwhile must be left alone, also
// if copies of an old superblock are still on it.
#pragma once

#include <string>

#include "io/block_device.h"

namespace varve::io {

// A name like "swap space", or "" where nothing is known. Blocks that cannot be read say nothing.
std::string find_foreign_content(BlockDevice& device);

// For a caller that has not even found Varve's magic in block 0: the same, and "something unknown" for bytes there that have no name,
// unless all are the same, as where something was erased.
std::string find_any_content(BlockDevice& device);

// For a caller that finds no superblock in block 0 that can be used: find_any_content(), with one exception. For a damaged one that
// still begins as Varve's it looks for marks in block 0 only, since those of other blocks may be what a file of Varve's holds.
std::string find_newcomer(BlockDevice& device, bool has_magic);

}  // namespace varve::io
