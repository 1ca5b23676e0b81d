// When no superblock stands where it should: looks for one on the whole device.
#pragma once

#include "check/check.h"
#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::repair {

struct FoundSuperblock {
  format::Superblock super;
  BlockAddr address;   // where it was found
  bool image = false;  // the last node of a checkpoint
  bool whole = false;  // its trees can be read; known of the one that is taken
};

// Takes a copy of the superblock itself if its trees are whole; else the newest image whose trees are; else the best there
// is. Of several filesystems that have stood on the device the one made last counts. `identity`, `above`: only of this
// filesystem and newer than this checkpoint, when given. Errc::not_varve: nothing found.
Result<FoundSuperblock> search_superblock(io::BlockDevice& device, check::Progress* progress, std::uint64_t identity = 0,
                                          Serial above = {});

// The size of the filesystem that was made last, in blocks, as its images tell it: more than there are if the device is
// cut off. 0: none.
std::uint64_t blocks_told_by_images(io::BlockDevice& device);

}  // namespace varve::repair
