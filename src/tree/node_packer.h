// Packs the items and child references of a merge into the nodes of the new tree, all levels at once.
//
// Each level has a queue of what is to go into its next nodes; a finished node's reference goes to the queue of the
// level above. A queue hands out full nodes only while it keeps about another one. So what is left when it must be
// emptied (settled), before an old node is kept as it is, can be cut evenly. What then is too little for a node takes
// the old node to its left apart, whose reference still waits in the queue above. It stays too little beside bad nodes.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>

#include "base/buffer.h"
#include "tree/item_merge.h"
#include "tree/pack_queue.h"

namespace varve::tree {

class NodePacker {
 public:
  NodePacker(NodeSource& source, NodeSink& sink, format::TreeId tree, const MergeOptions& options);

  Status add_item(const format::Key& key, std::span<const std::byte> value);
  // A node of the old tree that stays, of level `level` - 1; everything below it must be settled.
  Status add_old_child(unsigned level, const format::ChildRef& child);

  // Something waits at `level`, but too little for a node.
  bool is_underfilled(unsigned level) const;
  // Writes everything that waits at `level`; the levels below it must be settled. False: nothing written, for it is too
  // little for a node and there is no old node to its left.
  Result<bool> settle(unsigned level);
  // The same for `level` and all below, however little it is: its neighbours cannot be read.
  Status settle_anyway(unsigned level);
  // Writes everything and finds the root.
  Result<TreeRoot> finish();

 private:
  // A copy of the value; nearly all are short.
  class ItemValue {
   public:
    explicit ItemValue(std::span<const std::byte> value);
    std::span<const std::byte> span() const { return {long_ ? long_.get() : short_.data(), size_}; }
    std::size_t coded_bytes() const { return format::varint_bytes(size_) + size_; }

   private:
    std::array<std::byte, 40> short_;
    std::unique_ptr<std::byte[]> long_;
    std::size_t size_;
  };
  struct ChildValue {
    format::NodeRef ref;
    bool is_old = false;
    std::size_t coded_bytes() const { return 10 + format::varint_bytes(ref.blocks); }  // address, CRC, blocks
  };

  PackQueue<ChildValue>& children(unsigned level);  // of the nodes of `level`, which is above 0
  std::size_t waiting_bytes(unsigned level) const;
  bool is_empty_above(unsigned level) const;
  std::size_t fill_bytes() const;

  Status push_child(unsigned level, const format::ChildRef& child, bool is_old);
  Result<bool> take_left(unsigned level);
  Status prepend(unsigned level, const Node& node);
  Status flush(unsigned level, bool is_right_edge);
  Status write_node(unsigned level, std::size_t target);
  Result<format::ChildRef> write_leaf(std::size_t target);
  Result<format::ChildRef> write_interior(unsigned level, std::size_t target);
  Result<TreeRoot> root_of(const format::NodeRef& ref, bool is_old, unsigned level);

  NodeSource& source_;
  NodeSink& sink_;
  const format::TreeId tree_;
  const MergeOptions& options_;
  PackQueue<ItemValue> items_;
  std::deque<PackQueue<ChildValue>> children_;  // [level - 1]; references to queues stay valid as it grows
  AlignedBuffer block_;
};

}  // namespace varve::tree
