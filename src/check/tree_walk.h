// Visits the inode file in key order and checks its shape: levels, key ranges, sums of file blocks.
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

class TreeWalk {
 public:
  TreeWalk(Context& context, Claims& claims, ItemVisitor& visitor)
      : context_(context), claims_(claims), visitor_(visitor), reader_(context) {}

  void run();

 private:
  struct Range {  // of keys that a node may hold: lower ≤ key < upper
    format::Key lower, upper;
  };

  bool claim(BlockAddr address, unsigned level);
  void check_range(const FetchedNode& node, const format::Key& first, const format::Key& last, const Range& range);
  void check_first(const FetchedNode& node, const format::Key& key, const Range& range);
  void skip();  // what should come here cannot be visited
  void give_up(BlockAddr address, const Error& error);
  // The number of file blocks below the node, as counted; the reference's own number is compared with it.
  std::uint64_t walk(const FetchedNode& node, const format::NodeRef& ref, const Range& range);
  std::uint64_t walk_leaf(const FetchedNode& node, const Range& range);
  std::uint64_t walk_interior(const FetchedNode& node, const Range& range);

  Context& context_;
  Claims& claims_;
  ItemVisitor& visitor_;
  NodeReader reader_;
  std::uint64_t nodes_ = 0;
};

}  // namespace varve::check
