// The passes over the inode file that change nothing: which inodes there are, where their names lead, which blocks they claim.
#pragma once

#include "repair/facts.h"
#include "repair/inode_cleaner.h"

namespace varve::repair {

struct Survey {
  Facts facts;
  LostBlocks lost;  // of files that lose a block to another claim, or whose block holds something else
  std::uint64_t file_blocks = 0;  // of all extents
  bool counts_right = true;       // what each inode says of its blocks and entries is so
};

// Of two claims to a block the one wins whose checksum it matches, then the newer one; tree nodes win always. Blocks of
// extents that come from older copies are read and compared.
Result<Survey> survey(io::BlockDevice& device, const format::Superblock& super, const LeafPlan& plan);

}  // namespace varve::repair
