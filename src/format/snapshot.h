// Items of `.sfile`: what the filesystem keeps of snapshots (docs/format.md, docs/design.md "Snapshots").
//
// A snapshot is named by the serial of the checkpoint that it keeps. Addresses in kept trees never change: where the cleaner has moved
// a block, an item says where it stands now.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "format/item.h"
#include "format/node.h"

namespace varve::format {

// When a block came into being. A file block's is the clock of its write; where clocks may have begun anew since (after 2^32 units)
// nothing is known, and it counts as older than all snapshots. A node's is the serial of the checkpoint that wrote it.
struct Birth {
  bool of_node = false;
  bool ancient = false;
  std::uint64_t when = 0;  // clock units, or a serial

  bool operator==(const Birth&) const = default;
};

// --- snapshot: what is kept, and the sum of what only lists of it hold ---------------------------------------------------------
struct SnapshotItem {
  Serial serial;
  bool deleting = false;    // its name has gone; what it held alone is being given back
  bool automatic = false;   // made unasked, and given up the same way; its name begins with kAutomaticPrefix
  std::string name;         // 1 to 255 bytes
  Timestamp made;
  std::uint64_t clock = 0;  // in units: blocks written later have this one or a later one
  NodeRef inode_file;
  std::uint8_t inode_file_level = 0;
  std::uint64_t data_blocks = 0, reserved_blocks = 0, inodes = 0;  // as in the superblock
  std::uint64_t next_piece = 0;  // of its list of dead blocks
  std::uint64_t dead = 0;        // blocks in the list: the live tree let them go when this was the newest snapshot
  std::uint64_t alone = 0;       // of them those that no older snapshot holds

  // Is a block in its tree that died later and was born then?
  bool holds(const Birth& birth) const { return birth.ancient || (birth.of_node ? birth.when <= serial.v : birth.when < clock); }
  bool operator==(const SnapshotItem&) const = default;
};
inline constexpr std::string_view kAutomaticPrefix = "auto-";
std::string automatic_name(const Timestamp& made);  // auto-2026-11-26T02:30:00Z
// Of one that a tool makes for as long as it runs: "now (varve PID-RANDOM)". The next mount deletes what a crash has left of them.
std::string passing_name(std::uint32_t process, std::uint32_t random);
bool is_passing_name(std::string_view name);
// For one that is asked for. Errc::invalid: empty, over 255 bytes, with '/', ',' or what is no printable UTF-8, ".", "..", "auto-…".
Status check_snapshot_name(std::string_view name);
Key snapshot_key(Serial serial);
void encode_snapshot(const SnapshotItem& snapshot, Bytes& out);
Result<SnapshotItem> decode_snapshot(const Key& key, std::span<const std::byte> value);

// --- dead: pieces of a snapshot's list of dead blocks ---------------------------------------------------------------------------
// Blocks that stood at `address` when the live tree let them go.
struct DeadRun {
  BlockAddr address;
  std::uint64_t length = 1;  // of a node: 1
  Birth birth;
  std::uint32_t clock = 0;   // of file blocks, as in their extent
  std::uint8_t estimate = 0;  // 0: the sum of rates of their segment does not count them (any more)

  bool operator==(const DeadRun&) const = default;
};
struct DeadPiece {
  Serial death;  // the checkpoint without them
  std::vector<DeadRun> runs;
};
Key dead_key(Serial holder, std::uint64_t piece);
bool is_dead_key_of(const Key& key, Serial holder);
std::uint64_t piece_number(const Key& key);  // of a list's piece
Result<DeadPiece> decode_dead(std::span<const std::byte> value);
inline constexpr std::size_t kDeadRunBytes = 24;  // at most; 11 are usual

inline constexpr std::size_t kDeadPieceBytes = 1000;  // of runs; a rest of a piece that is written again may take a little more
inline constexpr std::size_t kMostDeadPieceBytes = kMaxItemValue - 10;

// Fills one piece. add() returns false, and changes nothing, when the run does not fit any more.
class DeadPieceBuilder {
 public:
  explicit DeadPieceBuilder(std::size_t most_bytes = kDeadPieceBytes) : most_bytes_(most_bytes) {}
  bool add(const DeadRun& run);
  bool empty() const { return runs_ == 0; }
  Bytes finish(Serial death);  // resets the builder

 private:
  const std::size_t most_bytes_;
  Bytes bytes_;
  std::size_t runs_ = 0;
  std::uint64_t end_ = 0;  // of the last run
};

// --- place and name: where a block stands that an old tree expects elsewhere -------------------------------------------------------
// Of the block that stood at an address when a checkpoint moved it away. The tree of a snapshot `s` means by an address the block of
// the first such item with a serial above `s`; where there is none, the one that stands there.
struct PlaceItem {
  BlockAddr place;
  Birth birth;

  bool operator==(const PlaceItem&) const = default;
};
Key place_key(BlockAddr named, Serial left);
void encode_place(const PlaceItem& item, Bytes& out);
Result<PlaceItem> decode_place(std::span<const std::byte> value);
// The way back: under the place, the address by which old trees name the block.
Key name_key(BlockAddr place, Serial left);
void encode_name(BlockAddr named, Bytes& out);
Result<BlockAddr> decode_name(std::span<const std::byte> value);

}  // namespace varve::format
