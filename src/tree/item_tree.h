// Reading a tree of items: one immutable B+tree ordered by key. That is the inode file, unless the root says otherwise.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "format/key.h"
#include "format/node.h"
#include "tree/node_cache.h"

namespace varve::tree {

// A leaf of the file's B+tree is never empty: a tree without items has no root.
struct TreeRoot {
  format::NodeRef ref;  // none: the tree is empty
  std::uint8_t level = 0;
  format::TreeId tree = format::TreeId::inode_file;

  bool operator==(const TreeRoot&) const = default;
};

// Reads a node and checks that it continues what its parent says of it.
Result<NodePtr> get_root(NodeSource& source, const TreeRoot& root);
Result<NodePtr> get_child(NodeSource& source, format::TreeId tree, const format::ChildRef& child, std::uint8_t level);
// The same, and the source may fetch some of its siblings along with it.
Result<NodePtr> get_child(NodeSource& source, const Siblings& siblings, std::uint8_t level);
// The child that holds everything from `key` on; the first one also holds what is below its own key.
std::size_t child_index(std::span<const format::ChildRef> children, const format::Key& key);

// Position in the tree; pins the nodes on its path. Any call may fail with Errc::would_block (fetch and start again) or
// Errc::corrupt. A next() that failed has not moved and can be repeated; a seek that failed leaves no position.
// Belongs to one thread.
class Cursor {
 public:
  Cursor(NodeSource& source, const TreeRoot& root) : source_(source), root_(root) {}

  Status seek(const format::Key& key);        // first item with key >= `key`
  Status seek_floor(const format::Key& key);  // last item with key <= `key`; if there is none, the first item
  Status next();
  bool valid() const { return leaf_ != nullptr; }  // false: past the last item
  const format::Key& key() const { return leaf_->items()[at_].key; }
  std::span<const std::byte> value() const { return leaf_->items()[at_].value; }
  NodePtr leaf() const { return leaf_; }  // keeps value() alive after the cursor moves on
  // Asks the source to fetch the leaves after this one (as many as `count`, below the same parent) in one go.
  void prefetch_leaves(unsigned count);

 private:
  struct Step {
    NodePtr node;
    std::size_t at = 0;
  };
  Status descend(const format::Key& key);
  Status dive(NodePtr node, const format::Key& key, std::vector<Step>& steps);
  Status next_leaf();

  NodeSource& source_;
  TreeRoot root_;
  std::vector<Step> path_;  // interior nodes, root first
  NodePtr leaf_;
  std::size_t at_ = 0;
};

// The reference to the node of `level` that holds `key`; none: the tree is not so high.
Result<format::NodeRef> find_node(NodeSource& source, const TreeRoot& root, const format::Key& key, std::uint8_t level);

struct FoundItem {
  NodePtr leaf;  // pins value
  std::span<const std::byte> value;
};
// The item with exactly this key.
Result<std::optional<FoundItem>> find_item(NodeSource& source, const TreeRoot& root, const format::Key& key);

// Number of blocks that the extents of `ino` own in file blocks [from, to), unwritten ones included; O(log n) reads by
// the sums that child references carry.
Result<std::uint64_t> count_blocks(NodeSource& source, const TreeRoot& root, Ino ino, std::uint64_t from,
                                   std::uint64_t to);

}  // namespace varve::tree
