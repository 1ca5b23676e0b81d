// The tree nodes that stand in segments to be emptied: a checkpoint rewrites them, so that they end up elsewhere.
//
// Nobody else may need them: they may be in memory, or of files that nobody asks for. So a node that cannot be read, or is not
// the one that its tree refers to (where a write was lost an older one stands, sound in itself), is reported and stays.
#pragma once

#include <map>
#include <set>
#include <span>
#include <vector>

#include "base/types.h"
#include "io/batch.h"
#include "tree/item_merge.h"

namespace varve::device {
class Faults;
}

namespace varve::segments {
class SegmentTable;
}

namespace varve::tree {
class Trees;
}

namespace varve::checkpoint {

// For the thread that runs checkpoints; of the view in force.
class Evacuees {
 public:
  struct Parts {
    io::BlockDevice& device;
    const segments::SegmentTable& segments;
    const tree::Trees& trees;
    tree::NodeSource& source;
    device::Faults& faults;
    std::uint64_t identity;    // of the filesystem
    std::size_t memory_bytes;  // of the engine
  };
  Evacuees(const Parts& parts, std::span<const SegmentId> segments) : parts_(parts), segments_(segments), batch_(parts.device) {}

  // The reverse map says which blocks are nodes, a node says where in its tree it is.
  Status find();
  // Does a node that is there have to go?
  bool has(BlockAddr address) const;

  const std::vector<tree::NodePlace>& of_inode_file() const { return of_inode_file_; }  // ascending
  const std::vector<tree::NodePlace>& of_snapshots() const { return of_snapshots_; }    // the same
  struct MapNode {
    format::TreeId tree = format::TreeId::reverse_map;
    std::uint64_t record = 0;  // its first one
    std::uint8_t level = 0;
  };
  const std::vector<MapNode>& of_maps() const { return of_maps_; }
  void report_stuck() const;

 private:
  struct Suspect {  // the reverse map says that it is a node of this tree
    BlockAddr address;
    format::TreeId tree = format::TreeId::inode_file;
  };
  // Of a segment, in ascending order.
  Result<std::vector<Suspect>> nodes_in(SegmentId segment);
  Status look_at(std::span<const Suspect> nodes);
  Status read_and_note(std::span<const Suspect> nodes);
  Status note(const Suspect& node, std::span<const std::byte> block);  // an error if it is not the one that its tree refers to
  Result<format::NodeRef> reference_to(const format::NodeHeader& header) const;

  const Parts parts_;
  const std::span<const SegmentId> segments_;
  std::vector<tree::NodePlace> of_inode_file_, of_snapshots_;
  std::vector<MapNode> of_maps_;
  std::map<BlockAddr, Error> stuck_;
  std::set<BlockAddr> old_;  // of these: a snapshot alone seems to have it. Then the cleaner has moved it, and it is not reported
  io::Batch batch_;
};

}  // namespace varve::checkpoint
