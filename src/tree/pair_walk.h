// Two trees of items side by side, of which only that is read which they do not have in common. Nodes are written once, so a subtree
// that stands at the same place in both is the same.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "tree/item_tree.h"

namespace varve::tree {

// Belongs to one thread. Any call may fail with Errc::would_block or Errc::corrupt, and then has not moved.
class PairWalk {
 public:
  struct Side {
    NodeSource& source;
    TreeRoot root;
  };
  // Do both trees mean the same block by these references? Asked only where address and CRC are equal: an address may have been used
  // again meanwhile.
  using Same = std::function<Result<bool>(const format::NodeRef& before, const format::NodeRef& after)>;

  // Begins at `from`: what is below it does not count.
  PairWalk(Side before, Side after, const format::Key& from, Same same)
      : before_(before), after_(after), position_(from), same_(std::move(same)) {}

  // A part of both trees in which something may differ: [from, bound) in the order of keys.
  struct Stretch {
    NodePtr before, after;  // leaves that hold all items of it; null: there are none
    format::Key from, bound;

    std::span<const format::ItemRef> items_before() const { return items_of(before); }
    std::span<const format::ItemRef> items_after() const { return items_of(after); }

   private:
    std::span<const format::ItemRef> items_of(const NodePtr& leaf) const;
  };
  // The next one; none: the trees have come to their end.
  Result<std::optional<Stretch>> next();

  const format::Key& position() const { return position_; }  // everything before it is equal, or was in a stretch
  std::uint64_t nodes() const { return nodes_; }              // that were looked into

 private:
  struct Child {
    format::ChildRef ref;  // without an address: the tree is empty
    std::uint8_t level = 0;
    bool is_root = false;
    format::Key bound;     // the first key that is not below it
  };
  struct Frame {
    NodePtr node;
    format::Key bound;
  };
  struct Path {
    explicit Path(const Side& of) : side(of) {}
    Child child_at(const format::Key& at);  // below the lowest node of the path that holds this key
    Result<NodePtr> read(const Child& child) const;
    Status enter(const Child& child);

    Side side;
    std::vector<Frame> frames;  // interior nodes, root first
  };
  Result<bool> are_same(const Child& before, const Child& after) const;
  void look_ahead();

  Path before_, after_;
  format::Key position_;
  const Same same_;
  std::uint64_t nodes_ = 0;
};

}  // namespace varve::tree
