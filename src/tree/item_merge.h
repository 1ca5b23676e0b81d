// The only way a tree of items changes: one pass over sorted edits that writes a new tree beside the old one. Each
// touched node is read once and written once; untouched subtrees are shared.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "tree/item_tree.h"

namespace varve::tree {

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
  // Smallest key at which an edit is still to be made; nullopt at the end. A range edit that has been applied up to
  // some bound continues at that bound.
  virtual std::optional<format::Key> next_key() = 0;
  // Is given all old items of one leaf: those with a key in [lower, bound). Puts into `out` everything that shall stand there from
  // now on, with keys in [lower, bound), and thereby consumes all edits below `bound`.
  // A leaf without edits is not shown, even if it is rewritten for its address or to fill up its neighbour.
  virtual Status edit(std::span<const format::ItemRef> old_items, const format::Key& bound, ItemSink& out) = 0;
  // Look-ahead for deep queues: what next_key() would say if everything below `from` were done; consumes nothing. Only
  // a hint; nullopt (also "don't know") reads nothing ahead.
  virtual std::optional<format::Key> peek_key(const format::Key& from) {
    (void)from;
    return std::nullopt;
  }
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
  // A node of the old tree that is not part of the new one. `birth`: the checkpoint that wrote it, of nodes of trees of items.
  virtual void release(BlockAddr address, Serial birth) = 0;
};

// A node of the old tree, named so that a merge finds the way to it.
struct NodePlace {
  format::Key first;  // its first key
  std::uint8_t level = 0;

  auto operator<=>(const NodePlace&) const = default;
};

struct MergeOptions {
  double fill = 0.92;    // of a node's payload, when packing several
  double refill = 0.40;  // a node below this takes a sibling along
  // Nodes of the old tree that must be rewritten even without edits, because their segment is being cleaned: asked for
  // every child of a node that is rewritten anyway ...
  std::function<bool(BlockAddr)> evacuate;
  // ... and these, ascending, to which the merge goes on its own. Rewrites the nodes above them, too.
  std::vector<NodePlace> evacuate_keys;
};

// Returns the root of the new tree; the old one stays readable. A tree without items has no root (ref is none), and
// such a root is a valid beginning. All nodes but the last of each level end up at least about `refill` full; nodes
// that are touched in a row are packed to `fill`. An error leaves both `source` and the old tree as they were; what has
// been allocated and released until then is the sink's to forget. Errc::invalid: the editor broke its contract.
Result<TreeRoot> merge_items(NodeSource& source, const TreeRoot& root, ItemEditor& editor, NodeSink& sink,
                             const MergeOptions& options);

}  // namespace varve::tree
