// Decoded tree nodes, immutable and shared, found by address; bounded in bytes.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include "base/buffer.h"
#include "base/result.h"
#include "base/tunable.h"
#include "format/node.h"
#include "io/block_device.h"

namespace varve::tree {

// A verified node. Immutable, so any thread may read it without a lock.
class Node : public boost::intrusive_ref_counter<Node, boost::thread_safe_counter> {
 public:
  static Result<boost::intrusive_ptr<const Node>> decode(AlignedBuffer block, const format::NodeExpectation& expected);

  const format::NodeHeader& header() const { return header_; }
  std::span<const std::byte> block() const { return block_.span(); }
  std::span<const format::ItemRef> items() const { return items_; }        // leaf of the inode file
  std::span<const format::ChildRef> children() const { return children_; }  // interior node of the inode file
  std::span<const format::NodeRef> slots() const { return slots_; }         // interior node of a map
  std::span<const std::byte> records() const { return format::map_leaf_records(block_.span()); }  // leaf of a map
  std::size_t memory() const;  // bytes, with decoded tables

 private:
  AlignedBuffer block_;
  format::NodeHeader header_;
  std::vector<format::ItemRef> items_;
  std::vector<format::ChildRef> children_;
  std::vector<format::NodeRef> slots_;
};
using NodePtr = boost::intrusive_ptr<const Node>;

// A node that somebody needs.
struct NodeWant {
  format::NodeRef ref;
  format::TreeId tree = format::TreeId::inode_file;
  std::uint8_t level = 0;
  BlockAddr place{};  // where it stands, if a cleaner has moved it since (snapshots/places.h); else where the reference says

  BlockAddr where() const { return place ? place : ref.address; }
};

// The children of a node in the order of their keys, and which of them is meant.
struct Siblings {
  std::span<const format::ChildRef> children;
  std::size_t at = 0;
  format::TreeId tree = format::TreeId::inode_file;

  const format::ChildRef& child() const { return children[at]; }
};

// Thread-safe, sharded; evicts the least recently used (second chance) beyond its bound. A cached node can belong to a
// former checkpoint: its address may have been reused since, therefore a hit must also match the wanted CRC.
// What was read ahead and has not been asked for yet has an eighth of the bound at most, and goes first there: nothing that is used makes
// room for more of it.
class NodeCache {
 public:
  NodeCache(std::uint64_t identity, std::size_t bytes_max);
  ~NodeCache();
  NodeCache(const NodeCache&) = delete;
  NodeCache& operator=(const NodeCache&) = delete;

  NodePtr find(const NodeWant& want);
  bool contains(const NodeWant& want) const;  // no use of it, for what is read ahead
  // Verifies and decodes what was read for `want`, and keeps it. Errc::corrupt says what does not fit.
  Result<NodePtr> insert(const NodeWant& want, AlignedBuffer block);
  void insert(NodePtr node, std::uint32_t crc);  // just written by a checkpoint
  // Of what nobody has asked for; leaves alone what stands at its address.
  void insert_ahead(NodePtr node, std::uint32_t crc);
  // What was read for `want`, verified and decoded, and not kept.
  Result<NodePtr> decode(const NodeWant& want, AlignedBuffer block) const;
  void erase(BlockAddr address);
  void clear();
  // Another bound: what is too much goes at once. A caller that has a node keeps it.
  void bound(std::size_t bytes_max);

  std::uint64_t identity() const { return identity_; }
  std::size_t bytes() const;
  std::uint64_t hits() const;
  std::uint64_t misses() const;

 private:
  struct Shard;
  Shard& shard_of(BlockAddr address) const;

  std::uint64_t identity_;
  Tunable<std::size_t> shard_bytes_max_;
  std::vector<std::unique_ptr<Shard>> shards_;
};

// It says that one node is bad, not that nothing goes any more.
inline bool is_of_one_node(const Error& error) { return error.is(Errc::io) || error.is(Errc::corrupt); }

// Where tree code takes its nodes from. What a miss means is the source's business: a blocking source reads the device;
// the source of a parked operation notes what is missing and answers Errc::would_block.
class NodeSource {
 public:
  virtual ~NodeSource() = default;
  virtual Result<NodePtr> get(const NodeWant& want) = 0;
  // The same of a child of which the siblings are known; a source may fetch some of them along with it.
  virtual Result<NodePtr> get_child(const Siblings& siblings, std::uint8_t level) {
    return get({siblings.child().ref, siblings.tree, level});
  }
  // The caller is going to get() all of these; a source may fetch them together.
  virtual void prefetch(std::span<const NodeWant> wants) = 0;
};

// Reads misses synchronously; prefetch() reads a batch in one go, many in flight. Belongs to one thread.
// What a prefetch brought stays pinned until get() takes it, or until the next prefetch of the same level, so that a
// walk which fetches ahead on several levels never loses it to eviction. A node that prefetch() cannot read is left to
// get(), which says why.
class BlockingSource : public NodeSource {
 public:
  // `cache_reads`: keep what was read in the cache (false for one-time scans).
  BlockingSource(NodeCache& cache, io::BlockDevice& device, bool cache_reads = true);
  Result<NodePtr> get(const NodeWant& want) override;
  Result<NodePtr> get_child(const Siblings& siblings, std::uint8_t level) override;
  void prefetch(std::span<const NodeWant> wants) override;

 private:
  struct Pin {
    NodePtr node;
    std::uint32_t crc = 0;
  };
  using Pins = std::unordered_map<BlockAddr, Pin>;

  NodePtr take_pinned(const NodeWant& want);
  bool is_on_device(const NodeWant& want) const;
  Result<NodePtr> accept(const NodeWant& want, AlignedBuffer block);
  Result<NodePtr> load(const NodeWant& want);
  void read_ahead(const NodeWant& want, std::span<const NodeWant> beside);
  void read_all(std::span<const NodeWant> wants, std::vector<Pins>& pins);
  void take_run(std::span<const NodeWant> wants, const AlignedBuffer& bytes, std::vector<Pins>& pins);

  NodeCache& cache_;
  io::BlockDevice& device_;
  bool cache_reads_;
  std::vector<Pins> pins_;  // per level
};

}  // namespace varve::tree
