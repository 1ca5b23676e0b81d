// The only way the inode file changes: one pass over sorted edits that writes a new tree beside the old one. Each touched
// node is read once and written once; untouched subtrees are shared.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "base/result.h"
#include "meta/tree/item_tree.h"

namespace varve::meta {

// Receives the items of a rewritten leaf, in strictly ascending key order. `value` is copied.
class ItemSink {
 public:
  virtual ~ItemSink() = default;
  virtual Status put(const format::Key& key, std::span<const std::byte> value) = 0;
};

// The edits of one merge, consumed in key order.
class ItemEditor {
 public:
  virtual ~ItemEditor() = default;
  // Smallest key at which an edit is still to be made; nullopt at the end. A range edit that has been applied up to some
  // bound continues at that bound.
  virtual std::optional<format::Key> next_key() = 0;
  // Given all old items of one leaf (every old item with a key in [lower, bound)), puts into `out` everything that shall
  // stand there from now on, keys in [lower, bound), and thereby consumes all edits below `bound`.
  virtual Status edit(std::span<const format::ItemRef> old_items, const format::Key& bound, ItemSink& out) = 0;
};

// Where a checkpoint's nodes go. Belongs to one thread.
class NodeSink {
 public:
  virtual ~NodeSink() = default;
  virtual std::uint64_t identity() const = 0;
  virtual Serial serial() const = 0;
  virtual Result<BlockAddr> allocate() = 0;  // next block of the metadata head
  // Takes over a finished node (kBlockSize bytes, copied); written some time before the checkpoint's flush.
  virtual Status write(BlockAddr address, std::span<const std::byte> block, std::uint32_t crc,
                       format::TreeId tree, std::uint8_t level) = 0;
  virtual void release(BlockAddr address) = 0;  // a node of the old tree that is not part of the new one
};

struct MergeOptions {
  double fill = 0.92;      // of a node's payload, when packing
  double refill = 0.40;    // a leaf below this takes its next sibling along
  // Nodes (of the old tree) that must be rewritten even without edits, because their segment is being cleaned.
  std::function<bool(BlockAddr)> evacuate;  // asked only for nodes on the way; see also `extra_keys` in the editor
};

// Returns the root of the new tree; the old one stays readable. An empty tree is one empty leaf.
Result<TreeRoot> merge_items(NodeSource& source, const TreeRoot& root, ItemEditor& editor, NodeSink& sink,
                             const MergeOptions& options);

}  // namespace varve::meta
