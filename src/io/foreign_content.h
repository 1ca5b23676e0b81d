// What else than Varve a device says it holds, by the marks that others write at its start.
//
// For whoever finds no superblock there: a device that has been given to something else meanwhile must be left alone, also
// if copies of an old superblock are still on it.
#pragma once

#include <string>

#include "io/block_device.h"

namespace varve::io {

// A name like "swap space", or "" where nothing is known. Blocks that cannot be read say nothing.
std::string find_foreign_content(BlockDevice& device);

}  // namespace varve::io
