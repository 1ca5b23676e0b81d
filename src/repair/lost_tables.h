// What a lost part of `.sfile` said, told from the rest of the device: snapshots, and where blocks stand that have been moved.
//
// An older copy of an item may name a snapshot whose blocks have been given away since. So it counts only if its whole tree is live now:
// each node matches its checksum, and `.mfile` says of each block what the tree says. Moved blocks are found by the same owner.
// Memory: four bytes for each block of the device, and what has been moved.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "check/kept_trees.h"
#include "repair/key_range.h"

namespace varve::repair {

class LostTables {
 public:
  // All outlive this. `tables`: as far as they could be read.
  LostTables(io::BlockDevice& device, const format::Superblock& super, check::SnapshotTables& tables, check::Progress* progress)
      : device_(device), super_(super), tables_(tables), progress_(progress) {}

  // Adds to the tables what it finds: of snapshots with keys in `lost` no more than `most`. Reads the whole device.
  void find(std::span<const KeyRange> lost, std::uint64_t most);

  const std::vector<std::string>& found() const { return found_; }        // snapshots that are back
  const std::vector<std::string>& not_found() const { return not_found_; }  // older copies name them, but they are not whole
  std::uint64_t deleted() const { return deleted_; }                      // snapshots that were being given back
  std::uint64_t blocks_not_found() const { return blocks_not_found_; }    // of snapshots that were known: moved, nobody knows where to
  const std::map<format::Key, BlockAddr>& places() const { return places_; }  // that were added

 private:
  struct Candidate {
    Serial copied;  // by this checkpoint
    format::SnapshotItem item;
  };
  struct Want {
    BlockAddr named;
    Serial seen;
  };
  using NodeName = std::pair<BlockAddr, std::uint32_t>;  // address and CRC

  bool read_owners();
  void scan(std::span<const KeyRange> lost);
  void look_at(BlockAddr address, std::span<const std::byte> block, std::span<const KeyRange> lost);
  void take_items(std::span<const std::byte> block, const format::NodeHeader& header, std::span<const KeyRange> lost);
  void locate();
  void confirm(std::uint64_t most);
  void accept(format::SnapshotItem item);

  bool walk(const format::SnapshotItem& item) { return walk(item.inode_file, item.inode_file_level, item.serial); }
  bool walk(const format::NodeRef& ref, unsigned level, Serial seen);  // false: not all of it is there
  bool walk_children(const AlignedBuffer& block, const format::NodeHeader& header, Serial seen);
  bool walk_leaf(const AlignedBuffer& block, const format::NodeHeader& header, Serial seen);
  std::optional<AlignedBuffer> read_node(const format::NodeRef& ref, unsigned level, Serial seen);
  std::optional<AlignedBuffer> read_at(BlockAddr place, const format::NodeRef& ref, unsigned level);
  bool has_owner(BlockAddr place, const format::ReverseEntry& owner) const;
  void note_place(BlockAddr named, Serial seen, BlockAddr place);

  io::BlockDevice& device_;
  const format::Superblock& super_;
  check::SnapshotTables& tables_;
  check::Progress* progress_;
  std::vector<std::uint32_t> owners_;  // hashes, by address; 0: nothing lives there
  std::map<Serial, Candidate> candidates_;
  std::map<NodeName, BlockAddr> moved_nodes_;
  std::map<NodeName, bool> walked_;
  std::unordered_multimap<std::uint64_t, Want> wanted_;  // by the hash of the owner
  bool collects_ = false;                                // what is wanted
  std::map<format::Key, BlockAddr> places_;
  std::vector<std::string> found_, not_found_;
  std::uint64_t deleted_ = 0, blocks_not_found_ = 0;
};

}  // namespace varve::repair
