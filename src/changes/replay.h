// Puts the records of a recovered chain into a delta, without reading a tree.
#pragma once

#include <unordered_map>

#include "base/gate.h"
#include "changes/delta.h"
#include "format/chunk.h"
#include "format/record.h"
#include "tree/node_cache.h"

namespace varve::segments {
class SegmentTable;
}

namespace varve::tree {
class Trees;
}

namespace varve::changes {

class InodeTable;
class Staging;

class Replay {
 public:
  struct Parts {
    tree::Trees& trees;
    InodeTable& inodes;
    segments::SegmentTable& segments;
  };
  Replay(const Parts& parts, Delta& delta) : parts_(parts), delta_(delta) {}

  Status apply(const format::Chunk& chunk);
  // Where no checkpoint follows that would count the blocks of each file, and blocks and inodes of all: does so, after the
  // last chunk.
  void count();
  // Tails that are too long for the trees wait for the next chunk, as blocks of that clock. After the last chunk.
  void give_blocks_to_tails(Staging& staging, std::uint32_t clock) REQUIRES(the_gate);
  // Where a part of the inode file is lost: what the log changes of inodes that were in it goes as well.
  Status drop_lost_inodes();

 private:
  InodeDelta& inode(Ino ino);
  Status count(InodeDelta& delta, tree::NodeSource& source);
  void occupy(BlockAddr address);
  Status apply_record(const format::Record& record);
  void drop(FileDelta& file, const tree::BlockEntry& entry);

  Status on(const format::SetAttributes& r);
  Status on(const format::FreeInode& r);
  Status on(const format::SetOrphan& r);
  Status on(const format::ClearOrphan& r);
  Status on(const format::SetDirent& r);
  Status on(const format::DeleteDirent& r);
  Status on(const format::SetXattr& r);
  Status on(const format::DeleteXattr& r);
  Status on(const format::SetSymlink& r);
  Status on(const format::MapBlocks& r);
  Status on(const format::ClearRange& r);
  Status on(const format::SetTail& r);

  const Parts parts_;
  Delta& delta_;
  std::unordered_map<Ino, InodeDelta*> inodes_;
};

}  // namespace varve::changes
