// The passes over the inode file that change nothing: which inodes there are, where their names lead, which blocks they claim.
#pragma once

#include <map>
#include <unordered_set>
#include <vector>

#include "base/types.h"
#include "repair/inode_cleaner.h"

namespace varve::repair {

struct InodeFact {
  Ino ino;
  Ino parent;  // directories
  std::uint32_t nlink = 0;
  std::uint8_t type = 0;  // DT_*
};

struct NameFact {  // one directory entry
  Ino directory;
  std::uint64_t cookie = 0;
  Ino child;
  std::uint8_t type = 0;
};

// What was found out of all inodes at once. Memory: 32 bytes per inode, 32 per name, one bit per device block.
struct Facts {
  std::vector<InodeFact> inodes;  // ascending
  std::vector<NameFact> names;    // ascending by directory and cookie
  std::vector<Ino> orphans;       // ascending
  Ino lost_found;                 // the inode that "lost+found" in the root leads to, if any
  std::vector<bool> claimed;      // by device block: nodes and file blocks
  std::unordered_set<BlockAddr> disputed;  // claimed more than once

  const InodeFact* find(Ino ino) const;
};

// The written blocks of a file of which a part comes from an old copy, as a sum over all of them: here, and in `.mfile`.
struct DataSum {
  std::uint64_t here = 0, in_map = 0;
  bool map_known = false;
  bool is_same() const { return map_known && here == in_map; }
};

struct Survey {
  Facts facts;
  LostBlocks lost;  // of files that lose a block to another claim, or whose block holds something else
  std::uint64_t file_blocks = 0;  // of all extents
  std::map<Ino, DataSum> old_files;
  bool counts_right = true;       // what each inode says of its blocks and entries is so
};

// Of two claims to a block the one wins whose checksum it matches, then the newer one; tree nodes win always. Blocks of
// extents that come from older copies are read and compared.
Result<Survey> survey(io::BlockDevice& device, const format::Superblock& super, const LeafPlan& plan);

}  // namespace varve::repair
