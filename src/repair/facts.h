// What a survey of the inode file has found out, for all inodes at once. Memory: 32 bytes per inode, 32 per name, one bit
// per device block.
#pragma once

#include <unordered_set>
#include <vector>

#include "base/types.h"

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

struct Facts {
  std::vector<InodeFact> inodes;  // ascending
  std::vector<NameFact> names;    // ascending by directory and cookie
  std::vector<Ino> orphans;       // ascending
  Ino lost_found;                 // the inode that "lost+found" in the root leads to, if any
  std::vector<bool> claimed;      // by device block: nodes and file blocks
  std::unordered_set<BlockAddr> disputed;  // claimed more than once

  const InodeFact* find(Ino ino) const;
};

}  // namespace varve::repair
