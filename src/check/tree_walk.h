// Visits a tree of items in key order and checks its shape: levels, key ranges, sums of file blocks.
#pragma once

#include "check/claims.h"
#include "check/node_reader.h"

namespace varve::check {

class ItemVisitor {
 public:
  virtual ~ItemVisitor() = default;
  // Returns the number of file blocks that the item owns.
  virtual std::uint64_t visit(const format::ItemRef& item, BlockAddr leaf) = 0;
  // Items may be missing here, between those that were and will be visited; a problem was reported.
  virtual void gap() {}
};

struct WalkedTree {
  format::NodeRef root;
  unsigned level = 0;
  format::TreeId tree = format::TreeId::inode_file;
  bool kept = false;  // of a snapshot: what it shares with trees that have been walked is not walked again
  NodeReader::PlaceOf place_of = {};
};
inline WalkedTree newest_inode_file(const format::Superblock& super) { return {super.inode_file, super.inode_file_level}; }

class TreeWalk {
 public:
  TreeWalk(Context& context, Claims& claims, ItemVisitor& visitor, WalkedTree tree)
      : context_(context), claims_(claims), visitor_(visitor), tree_(std::move(tree)), reader_(context, tree_.place_of) {}

  bool run();  // false: not even the root could be read

 private:
  struct Range {  // of keys that a node may hold: lower ≤ key < upper
    format::Key lower, upper;
  };

  enum class Way : std::uint8_t { in, shared, barred };
  Way claim(BlockAddr address, unsigned level);
  void check_range(const FetchedNode& node, const format::Key& first, const format::Key& last, const Range& range);
  void check_first(const FetchedNode& node, const format::Key& key, const Range& range);
  bool is_torn() const { return tree_.kept ? context_.kept_damaged : context_.incomplete; }
  void skip();  // what should come here cannot be visited
  void give_up(BlockAddr address, const Error& error);
  // The number of file blocks below the node, as counted; the reference's own number is compared with it.
  std::uint64_t walk(const FetchedNode& node, const format::NodeRef& ref, const Range& range);
  std::uint64_t walk_leaf(const FetchedNode& node, const Range& range);
  std::uint64_t walk_interior(const FetchedNode& node, const Range& range);

  Context& context_;
  Claims& claims_;
  ItemVisitor& visitor_;
  const WalkedTree tree_;
  NodeReader reader_;
  std::uint64_t nodes_ = 0;
};

}  // namespace varve::check
