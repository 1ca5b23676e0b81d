// Follows a tree of items as far as it can be followed.
#pragma once

#include <optional>
#include <vector>

#include "format/superblock.h"
#include "repair/leaf_plan.h"
#include "tree/item_tree.h"

namespace varve::repair {

struct TreeGap {
  KeyRange range;
  unsigned level = 0;  // of the node that is missing: 0 a single leaf
};

class TreeReader {
 public:
  TreeReader(io::BlockDevice& device, const format::Superblock& super, const tree::TreeRoot& tree, LeafPlan& plan)
      : super_(super), tree_(tree), plan_(plan), device_(device), seen_(device.geometry().blocks()) {}

  // Fills in leaves, nodes and sound. Returns what the tree does not lead to, ascending.
  std::vector<TreeGap> run();

 private:
  struct Child {
    format::NodeRef ref;
    KeyRange range;
    std::optional<format::Key> first;  // as its parent says
  };

  // Both return the number of file blocks below.
  std::uint64_t visit(std::span<const Child> children, unsigned level);
  std::uint64_t visit_leaf(const Child& child, std::span<const std::byte> block, const format::NodeHeader& header);
  std::uint64_t visit_interior(const Child& child, std::span<const std::byte> block, const format::NodeHeader& header);
  bool enter(const format::NodeRef& ref);
  void miss(const KeyRange& range, unsigned level);

  const format::Superblock& super_;
  const tree::TreeRoot tree_;
  LeafPlan& plan_;
  io::BlockDevice& device_;
  std::vector<bool> seen_;
  std::vector<TreeGap> gaps_;
};

}  // namespace varve::repair
