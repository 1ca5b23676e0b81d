// What only snapshots hold: which blocks those are, where they stand, and what they must be. The lists of dead blocks in `.sfile` name
// each of them once, and `.mfile` has their checksums; so no snapshot's tree is walked. Belongs to one thread.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "format/map_record.h"
#include "format/snapshot.h"
#include "snapshots/snapshots.h"
#include "tree/node_cache.h"

namespace varve::store {
class Store;
}

namespace varve::tree {
struct TreeView;
}

namespace varve::scrub {

// A block that is to be read, of a file or, in a snapshot, of its tree.
struct Block {
  BlockAddr address;  // where it stands
  std::string error;  // what was wrong with it, if anything
  Errc kind = Errc::corrupt;  // or io: it could not be read

  Ino ino;                    // of a file: which, and what must be there
  std::uint64_t file_block = 0;
  std::uint32_t crc = 0;

  bool is_node = false;            // then the node says by itself whether it is whole
  std::uint8_t level = 0;
  std::optional<format::Key> first;  // of a damaged node, as it stands there: it may be true

  format::Birth birth;
  Serial death;  // the checkpoint without it; none: the live tree has it
};

class KeptBlocks {
 public:
  explicit KeptBlocks(store::Store& store);

  // From here on everything is as of this checkpoint. `view` stays where it is.
  void look_at(const tree::TreeView& view, snapshots::SnapshotList list);
  std::uint64_t reads() const { return cache_.misses(); }  // blocks read for looking up, about

  // Of a mount that shows a snapshot: where blocks stand that its tree names; those that are not in the result stand there.
  Result<std::map<BlockAddr, BlockAddr>> moved(BlockAddr first, std::uint64_t length);

  // Puts blocks [from, from + most) of a list's piece into `out`, without those that no snapshot needs any more.
  // An error: nobody says what some of them must be; the others are there.
  Status add(const format::DeadPiece& piece, std::uint64_t from, std::uint64_t most, std::vector<Block>& out);
  void judge_node(std::span<const std::byte> bytes, Block& node);  // sets its error

  // Has a snapshot a block of the live tree that a file has let go of since?
  bool is_kept(const format::Birth& birth) const;
  struct Holders {
    Serial newest;
    std::string name;         // of the newest
    std::uint64_t count = 0;  // all of them
  };
  Holders holders_of(const Block& block) const;
  // What hangs on a damaged node of a snapshot, if its tree confirms what stands there.
  struct Range {
    format::Key first, bound;
  };
  std::optional<Range> range_of(const Block& node);

 private:
  bool is_needed(const format::DeadRun& run, Serial death) const;
  Status add_stretch(const format::DeadRun& run, Serial death, BlockAddr place, std::uint64_t blocks, std::vector<Block>& out);
  Result<format::ReverseEntry> owner_of(BlockAddr place);

  tree::NodeCache cache_;  // of its own: what a scrub looks up shall push nothing out that others read
  tree::BlockingSource source_;
  const tree::TreeView* view_ = nullptr;
  snapshots::SnapshotList list_;  // without those that are being deleted
};

}  // namespace varve::scrub
