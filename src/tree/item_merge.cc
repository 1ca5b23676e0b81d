#include "tree/item_merge.h"

#include <fmt/format.h>

#include "base/invariant.h"
#include "tree/merge_scout.h"
#include "tree/node_packer.h"

namespace varve::tree {

using format::ChildRef;
using format::Key;

namespace {

// The walk over the old tree. Keys of a visited node lie in [lower, bound).
class Merge : private ItemSink {
 public:
  Merge(NodeSource& source, ItemEditor& editor, NodeSink& sink, format::TreeId tree, const MergeOptions& options)
      : source_(source),
        tree_(tree),
        editor_(editor),
        sink_(sink),
        evacuation_(options),
        scout_(source, editor, evacuation_, tree),
        packer_(source, sink, tree, options) {}

  Result<TreeRoot> run(const TreeRoot& root);

 private:
  Status put(const Key& key, std::span<const std::byte> value) override;

  bool has_edit_below(const Key& bound) const { return next_ && *next_ < bound; }
  Result<NodePtr> fetch(const ChildRef& child, unsigned level, const Key& lower, const Key& bound);
  Status visit(const NodePtr& node, const Key& lower, const Key& bound);
  Status visit_interior(const Node& node, const Key& lower, const Key& bound);
  Status visit_child(const ChildRef& child, unsigned level, const Key& lower, const Key& bound);
  Status take_along(const ChildRef& child, unsigned level, const Key& lower, const Key& bound);
  Result<bool> keep_child(const ChildRef& child, unsigned level);
  Status visit_leaf(std::span<const format::ItemRef> items, const Key& lower, const Key& bound);

  NodeSource& source_;
  const format::TreeId tree_;
  ItemEditor& editor_;
  NodeSink& sink_;
  Evacuation evacuation_;
  MergeScout scout_;
  NodePacker packer_;
  std::optional<Key> next_;   // of the editor
  std::optional<Key> last_;   // put so far
  Key lower_, bound_;         // of the leaf being rewritten
};

Result<TreeRoot> Merge::run(const TreeRoot& root) {
  next_ = editor_.next_key();
  if (!root.ref) {
    if (next_) TRY(visit_leaf({}, format::kMinKey, format::kMaxKey));
    return packer_.finish();
  }
  if (!next_ && !evacuation_.wants(root.ref.address, root.level, format::kMinKey, format::kMaxKey)) return root;
  NodePtr node = TRY(get_root(source_, root));
  scout_.start(node);
  sink_.release(root.ref.address, node->header().serial);
  TRY(visit(node, format::kMinKey, format::kMaxKey));
  return packer_.finish();
}

Status Merge::put(const Key& key, std::span<const std::byte> value) {
  if (key < lower_ || key >= bound_ || (last_ && key <= *last_))
    return Error(Errc::invalid, fmt::format("merge: item (inode {}, kind {}, offset {}) out of order", key.ino,
                                            static_cast<unsigned>(key.kind), key.offset));
  if (value.size() > format::kMaxItemValue)
    return Error(Errc::invalid, fmt::format("merge: item of inode {} with {} bytes", key.ino, value.size()));
  last_ = key;
  return packer_.add_item(key, value);
}

Result<NodePtr> Merge::fetch(const ChildRef& child, unsigned level, const Key& lower, const Key& bound) {
  TRY(scout_.reach(lower));
  NodePtr node = level > 0 ? scout_.take(child.ref) : nullptr;
  if (!node) node = TRY(source_.get({child.ref, tree_, static_cast<std::uint8_t>(level)}));
  const Key& last = level == 0 ? node->items().back().key : node->children().back().first;
  if (node->header().first != child.first || last >= bound)
    return Error(Errc::corrupt,
                 fmt::format("{} node at block {}: has keys beyond what its parent says", name_of(tree_), child.ref.address));
  return node;
}

Status Merge::visit(const NodePtr& node, const Key& lower, const Key& bound) {
  return node->header().level == 0 ? visit_leaf(node->items(), lower, bound) : visit_interior(*node, lower, bound);
}

Status Merge::visit_interior(const Node& node, const Key& lower, const Key& bound) {
  const auto children = node.children();
  const unsigned level = node.header().level - 1U;
  for (std::size_t i = 0; i < children.size(); ++i) {
    const Key child_lower = i == 0 ? lower : children[i].first;
    const Key child_bound = i + 1 < children.size() ? children[i + 1].first : bound;
    const bool must_change =
        has_edit_below(child_bound) || evacuation_.wants(children[i].ref.address, level, child_lower, child_bound);
    if (must_change)
      TRY(visit_child(children[i], level, child_lower, child_bound));
    else if (!TRY(keep_child(children[i], level)))
      TRY(take_along(children[i], level, child_lower, child_bound));
  }
  return {};
}

Status Merge::visit_child(const ChildRef& child, unsigned level, const Key& lower, const Key& bound) {
  const NodePtr node = TRY(fetch(child, level, lower, bound));
  sink_.release(child.ref.address, node->header().serial);
  return visit(node, lower, bound);
}

// Passes an old node on as it is. False: what waits to its left is too little, so it must be taken along.
Result<bool> Merge::keep_child(const ChildRef& child, unsigned level) {
  for (unsigned below = 0; below < level; ++below)
    if (!TRY(packer_.settle(below))) return false;
  if (packer_.is_underfilled(level) || !TRY(packer_.settle(level))) return false;
  TRY(packer_.add_old_child(level + 1, child));
  return true;
}

// Only because what waits to its left is too little. A bad node stays where it is, and what waits remains little.
Status Merge::take_along(const ChildRef& child, unsigned level, const Key& lower, const Key& bound) {
  const auto node = fetch(child, level, lower, bound);
  if (!node.ok() && is_of_one_node(node.error())) {
    TRY(packer_.settle_anyway(level));
    return packer_.add_old_child(level + 1, child);
  }
  if (!node.ok()) return node.error();
  sink_.release(child.ref.address, (*node)->header().serial);
  return visit(*node, lower, bound);
}

Status Merge::visit_leaf(std::span<const format::ItemRef> items, const Key& lower, const Key& bound) {
  INVARIANT(lower < bound);
  INVARIANT(!last_ || *last_ < lower);
  lower_ = lower;
  bound_ = bound;
  if (!has_edit_below(bound)) {
    for (const auto& item : items) TRY(put(item.key, item.value));
    return {};
  }
  TRY(editor_.edit(items, bound, *this));
  next_ = editor_.next_key();
  if (has_edit_below(bound))
    return Error(Errc::invalid, fmt::format("merge: an edit of inode {} was left behind", next_->ino));
  return {};
}

}  // namespace

Result<TreeRoot> merge_items(NodeSource& source, const TreeRoot& root, ItemEditor& editor, NodeSink& sink,
                             const MergeOptions& options) {
  return Merge(source, editor, sink, root.tree, options).run(root);
}

}  // namespace varve::tree
