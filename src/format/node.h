// Tree nodes: the only metadata blocks besides superblocks and chunk headers. One 4 KiB block each, bare in the log,
// never overwritten. A node identifies itself; a reference to it holds its address and CRC.
//
// Two families share the header. Trees of items are B+trees of items with variable length: the inode file, and `.sfile` with what
// belongs to snapshots. The maps `.mfile` and `.ffile` are arrays of fixed-size records under a radix tree of fixed fan-out.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "format/key.h"
#include "format/layout.h"

namespace varve::format {

enum class TreeId : std::uint8_t { inode_file = 1, reverse_map = 2, free_map = 3, super_image = 4, snapshots = 5 };
const char* name_of(TreeId tree);  // as people call it
constexpr bool is_item_tree(TreeId tree) { return tree == TreeId::inode_file || tree == TreeId::snapshots; }
// The kinds of items that a tree of them may have.
constexpr ItemKind first_kind(TreeId tree) { return tree == TreeId::snapshots ? ItemKind::snapshot : ItemKind::extent; }
constexpr ItemKind last_kind(TreeId tree) { return tree == TreeId::snapshots ? ItemKind::name : ItemKind::attributes; }

inline constexpr std::size_t kNodeHeaderBytes = 64;
inline constexpr std::size_t kNodePayloadBytes = kBlockSize - kNodeHeaderBytes;
inline constexpr std::uint8_t kMaxTreeLevel = 15;

// Header fields. On disk: magic u32, crc u32 (of the whole block with this field zero), identity u64, serial u64,
// address u48, tree u8, level u8, count u16, used u16 (payload bytes), first key (u64 ino, u8 kind, u64 offset), zeros to 64.
// `count` is the number of items, children or slots; 0 in a leaf of a map, whose record size the header does not know.
struct NodeHeader {
  std::uint64_t identity = 0;  // of the filesystem, random at mkfs
  Serial serial;               // checkpoint that wrote it
  BlockAddr address;           // where it stands
  TreeId tree = TreeId::inode_file;
  std::uint8_t level = 0;  // 0 = leaf
  std::uint16_t count = 0;
  std::uint16_t used = 0;
  Key first;  // maps: offset = index of the first record, rest zero
};

// Reference to a child node. `blocks` (inode file only) is the number of file blocks that the extents below own,
// which answers "how many blocks in this range" in logarithmic time.
struct NodeRef {
  BlockAddr address;
  std::uint32_t crc = 0;
  std::uint64_t blocks = 0;

  explicit operator bool() const { return static_cast<bool>(address); }
  bool operator==(const NodeRef&) const = default;
};

// What a reader expects of the block it fetched; a mismatch is Errc::corrupt with a message that says which.
struct NodeExpectation {
  std::uint64_t identity = 0;
  BlockAddr address;
  std::uint32_t crc = 0;  // of the whole block, as the referrer holds it
  TreeId tree = TreeId::inode_file;
  int level = -1;  // -1: not known
};

// The CRC that a referrer keeps: over the whole finished block.
std::uint32_t block_crc(std::span<const std::byte> block);

// Self-check only (scan, salvage): magic, own CRC, ranges of all fields; never trusts a length.
Result<NodeHeader> decode_node_header(std::span<const std::byte> block);
// The fast path of readers: the referrer's CRC vouches for the bytes, so the own CRC is not computed again.
Result<NodeHeader> check_node(std::span<const std::byte> block, const NodeExpectation& expected);

// --- Items: leaves of trees of items --------------------------------------------------------------------------------
// Payload of each item: tag u8 (bit 0: same ino as before, bit 1: same kind), [ino varint delta], [kind u8]. Then
// offset varint (delta to the previous item's when ino and kind are the same), value length varint, value bytes.
// The first item of a node is coded in full (tag 0).

struct ItemRef {  // an item inside a decoded leaf; value points into the block
  Key key;
  std::span<const std::byte> value;
};

// All items, keys strictly ascending, as many as the header counts.
Result<std::vector<ItemRef>> decode_items(std::span<const std::byte> block, const NodeHeader& header);

// Largest value an item may have: an extent of kMaxExtentBlocks fits, and three items always fit in a leaf.
inline constexpr std::size_t kMaxItemValue = 1040;

// Fills one leaf. add() returns false (and changes nothing) when the item does not fit, which is also its answer to a
// value above kMaxItemValue. Keys must come in strictly ascending order.
class LeafBuilder {
 public:
  explicit LeafBuilder(TreeId tree = TreeId::inode_file) : tree_(tree) {}
  bool add(const Key& key, std::span<const std::byte> value);
  bool empty() const { return count_ == 0; }
  std::size_t used() const { return payload_.size(); }  // bytes of payload so far
  Key first() const { return first_; }
  // Writes the finished block (4096 bytes) and returns its block_crc. Resets the builder.
  std::uint32_t finish(std::span<std::byte> block, std::uint64_t identity, Serial serial, BlockAddr address);

 private:
  TreeId tree_;
  std::vector<std::byte> payload_;
  Key first_, last_;
  std::uint16_t count_ = 0;
};

// --- Children: interior nodes of trees of items -----------------------------------------------------------------------
// Payload per child: key coded as for items, address u48, crc u32, blocks varint.

struct ChildRef {
  Key first;  // of the child; the first child of a node stands for everything below the second one's key
  NodeRef ref;
};

Result<std::vector<ChildRef>> decode_children(std::span<const std::byte> block, const NodeHeader& header);

class InteriorBuilder {
 public:
  explicit InteriorBuilder(TreeId tree = TreeId::inode_file) : tree_(tree) {}
  bool add(const ChildRef& child);
  bool empty() const { return count_ == 0; }
  std::size_t used() const { return payload_.size(); }
  Key first() const { return first_; }
  std::uint64_t blocks() const { return blocks_; }  // sum over the children
  std::uint32_t finish(std::span<std::byte> block, std::uint8_t level, std::uint64_t identity, Serial serial,
                       BlockAddr address);

 private:
  TreeId tree_;
  std::vector<std::byte> payload_;
  Key first_, last_;
  std::uint64_t blocks_ = 0;
  std::uint16_t count_ = 0;
};

// --- Maps: arrays under a radix tree ----------------------------------------------------------------------------------
// Interior node of a map: kMapFanout slots of {address u48, crc u32, zero u16}; address 0 = all records below are zero.
// Leaf: floor(kNodePayloadBytes / record size) records, zero-padded.

inline constexpr unsigned kMapFanout = 256;
inline constexpr std::size_t kMapSlotBytes = 12;

struct MapShape {
  std::size_t record_bytes = 0;
  std::uint64_t records = 0;

  std::uint64_t per_leaf() const { return kNodePayloadBytes / record_bytes; }
  std::uint64_t leaves() const { return (records + per_leaf() - 1) / per_leaf(); }
  unsigned root_level() const;  // 0 when one leaf holds all
};

// Always kMapFanout references, null where all is zero. encode fills up missing slots with null.
Result<std::vector<NodeRef>> decode_map_slots(std::span<const std::byte> block, const NodeHeader& header);
std::uint32_t encode_map_slots(std::span<std::byte> block, std::span<const NodeRef> slots, TreeId tree,
                               std::uint8_t level, std::uint64_t first_record, std::uint64_t identity, Serial serial,
                               BlockAddr address);
// Payload of a map leaf (all kNodePayloadBytes of it): records are read and written in place by format/map_record.h.
std::span<const std::byte> map_leaf_records(std::span<const std::byte> block);
std::uint32_t encode_map_leaf(std::span<std::byte> block, std::span<const std::byte> records, TreeId tree,
                              std::uint64_t first_record, std::uint64_t identity, Serial serial, BlockAddr address);

}  // namespace varve::format
