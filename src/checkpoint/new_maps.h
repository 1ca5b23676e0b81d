// The map of owners and the map of free blocks, as one checkpoint makes them anew. For the thread that makes it, in the order of the
// functions below.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "base/result.h"
#include "checkpoint/evacuees.h"
#include "snapshots/snapshots.h"
#include "tree/node_writer.h"
#include "tree/segment_ledger.h"
#include "tree/trees.h"

namespace varve::changes {
class Delta;
}

namespace varve::checkpoint {

class NewMaps {
 public:
  struct Parts {
    io::BlockDevice& device;
    const segments::SegmentTable& segments;
    const tree::TreeView& old;
    const changes::Delta& merged;  // what the checkpoint merges into the trees
    tree::NodeSource& source;
    tree::NodeWriter& writer;
    device::Faults& faults;
  };
  // `dead`: to be filled for a device that is told of dead blocks. `memory_bytes`: of the engine.
  NewMaps(const Parts& parts, std::optional<tree::DeadRuns> dead, std::size_t memory_bytes);

  // The filesystem gets the size that `super` says.
  Status reshape(const format::Superblock& super);
  // Nothing lives in this segment or behind it: what the map of owners knew of it goes, rather than from place to place.
  Status clear_from(SegmentId first);

  tree::SegmentLedger& ledger() { return ledger_; }  // the merge releases what files own no more

  // Besides blocks of files and nodes of their tree the first two come new, and the image of the former checkpoint goes.
  struct Others {
    std::span<const snapshots::HeldMove> arrived;
    std::span<const Evacuees::MapNode> evacuated;
    BlockAddr former_image;
  };
  // Gives all dirty nodes of both maps their addresses, and the image of the superblock its own.
  Status close(const Others& others);
  BlockAddr image_address() const { return image_address_; }
  // Returns the segments that have changed.
  Result<tree::SegmentLedger::Changed> fill_free_map(const Others& others, std::uint64_t generation);
  // The content of both, and their new roots in `next`.
  Status write(const Others& others, tree::TreeView& next);

 private:
  struct Lot {  // of blocks that have their entries in some leaves of the reverse map
    BlockAddr first, end;
    bool contains(BlockAddr address) const { return address >= first && address < end; }
  };
  Status lose_owners(BlockAddr address, const Error& why);
  Status touch(BlockAddr address);
  Status touch_evacuated(std::span<const Evacuees::MapNode> nodes);
  Status close_rest();
  Status write_reverse_leaves(const Others& others);
  Status fill_reverse_map(const Others& others, const Lot& lot, std::size_t nodes);
  Status for_each_new_block(const std::function<Status(Ino, const tree::BlockEntry&)>& visit) const;

  const Parts parts_;
  const std::size_t memory_bytes_;
  tree::MapEditor reverse_, free_;
  tree::SegmentLedger ledger_;
  BlockAddr cleared_from_;  // the reverse map; none: nowhere
  BlockAddr image_address_;
  std::uint64_t lost_nodes_ = 0;  // of the reverse map
};

}  // namespace varve::checkpoint
