#include "tree/item_tree.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "format/item.h"

namespace varve::tree {

using format::ChildRef;
using format::ItemKind;
using format::ItemRef;
using format::Key;

Result<NodePtr> get_root(NodeSource& source, const TreeRoot& root) {
  return source.get({root.ref, root.tree, root.level});
}

namespace {
Result<NodePtr> continuing(NodePtr node, const ChildRef& child) {
  if (node->header().first != child.first)
    return Error(Errc::corrupt, fmt::format("{} node at block {}: begins with another key than its parent says",
                                            name_of(node->header().tree), child.ref.address));
  return node;
}
}  // namespace

Result<NodePtr> get_child(NodeSource& source, format::TreeId tree, const ChildRef& child, std::uint8_t level) {
  return continuing(TRY(source.get({child.ref, tree, level})), child);
}

Result<NodePtr> get_child(NodeSource& source, const Siblings& siblings, std::uint8_t level) {
  return continuing(TRY(source.get_child(siblings, level)), siblings.child());
}

std::size_t child_index(std::span<const ChildRef> children, const Key& key) {
  const auto after = std::ranges::upper_bound(children, key, {}, &ChildRef::first);
  return after == children.begin() ? 0 : static_cast<std::size_t>(after - children.begin()) - 1;
}

Result<format::NodeRef> find_node(NodeSource& source, const TreeRoot& root, const Key& key, std::uint8_t level) {
  if (!root.ref || level > root.level) return format::NodeRef{};
  if (level == root.level) return root.ref;
  for (NodePtr node = TRY(get_root(source, root));;) {
    const Siblings siblings{node->children(), child_index(node->children(), key), root.tree};
    const auto below = static_cast<std::uint8_t>(node->header().level - 1);
    if (below == level) return siblings.child().ref;
    node = TRY(get_child(source, siblings, below));
  }
}

Status Cursor::dive(NodePtr node, const Key& key, std::vector<Step>& steps) {
  while (node->header().level > 0) {
    const std::size_t at = child_index(node->children(), key);
    const auto level = static_cast<std::uint8_t>(node->header().level - 1);
    NodePtr child = TRY(get_child(source_, {node->children(), at, root_.tree}, level));
    steps.push_back({std::move(node), at});
    node = std::move(child);
  }
  leaf_ = std::move(node);
  return {};
}

Status Cursor::descend(const Key& key) {
  path_.clear();
  leaf_ = nullptr;
  if (!root_.ref) return {};
  NodePtr root = TRY(get_root(source_, root_));
  return dive(std::move(root), key, path_);
}

Status Cursor::seek(const Key& key) {
  TRY(descend(key));
  if (!leaf_) return {};
  const auto items = leaf_->items();
  at_ = static_cast<std::size_t>(std::ranges::lower_bound(items, key, {}, &ItemRef::key) - items.begin());
  if (at_ < items.size()) return {};
  const Status moved = next_leaf();
  if (!moved.ok()) leaf_ = nullptr;
  return moved;
}

Status Cursor::seek_floor(const Key& key) {
  TRY(descend(key));
  if (!leaf_) return {};
  const auto items = leaf_->items();
  at_ = static_cast<std::size_t>(std::ranges::upper_bound(items, key, {}, &ItemRef::key) - items.begin());
  // Before the first item of a leaf there is only the beginning of the tree: a child's key is its first item's.
  if (at_ > 0) --at_;
  return {};
}

Status Cursor::next() {
  if (at_ + 1 == leaf_->items().size()) return next_leaf();
  ++at_;
  return {};
}

Status Cursor::next_leaf() {
  std::size_t depth = path_.size();
  while (depth > 0 && path_[depth - 1].at + 1 == path_[depth - 1].node->children().size()) --depth;
  if (depth == 0) {
    path_.clear();
    leaf_ = nullptr;
    return {};
  }
  // Changes the position only when everything has been read.
  const Node& parent = *path_[depth - 1].node;
  const std::size_t at = path_[depth - 1].at + 1;
  const auto level = static_cast<std::uint8_t>(parent.header().level - 1);
  std::vector<Step> below;
  NodePtr node = TRY(get_child(source_, {parent.children(), at, root_.tree}, level));
  const NodePtr old_leaf = leaf_;
  TRY(dive(std::move(node), format::kMinKey, below));
  // In a tree made by hand a node can have many parents: without this there are more paths than anybody can walk.
  if (leaf_->items().front().key <= old_leaf->items().back().key) {
    const BlockAddr wrong = leaf_->header().address;
    leaf_ = old_leaf;
    return Error(Errc::corrupt, fmt::format("{} node at block {}: its keys do not follow those of the leaf before it",
                                            name_of(root_.tree), wrong));
  }
  path_[depth - 1].at = at;
  path_.resize(depth);
  std::ranges::move(below, std::back_inserter(path_));
  at_ = 0;
  return {};
}

void Cursor::prefetch_leaves(unsigned count) {
  if (path_.empty()) return;
  const auto children = path_.back().node->children();
  std::vector<NodeWant> wants;
  for (std::size_t i = path_.back().at + 1; i < children.size() && wants.size() < count; ++i)
    wants.push_back({children[i].ref, root_.tree, 0});
  if (!wants.empty()) source_.prefetch(wants);
}

Result<std::optional<FoundItem>> find_item(NodeSource& source, const TreeRoot& root, const Key& key) {
  if (!root.ref) return std::optional<FoundItem>();
  NodePtr node = TRY(get_root(source, root));
  while (node->header().level > 0) {
    const Siblings siblings{node->children(), child_index(node->children(), key), root.tree};
    node = TRY(get_child(source, siblings, static_cast<std::uint8_t>(node->header().level - 1)));
  }
  const auto items = node->items();
  const auto at = std::ranges::lower_bound(items, key, {}, &ItemRef::key);
  if (at == items.end() || at->key != key) return std::optional<FoundItem>();
  return std::optional(FoundItem{node, at->value});
}

namespace {

// Blocks of all extents that begin in [from, to).
Result<std::uint64_t> sum_leaf(const Node& leaf, const Key& from, const Key& to) {
  std::uint64_t sum = 0;
  const auto items = leaf.items();
  for (auto item = std::ranges::lower_bound(items, from, {}, &ItemRef::key); item != items.end() && item->key < to;
       ++item)
    if (item->key.kind == ItemKind::extent) sum += TRY(format::owned_blocks(item->value));
  return sum;
}

Result<std::uint64_t> sum_blocks(NodeSource& source, const NodePtr& node, const Key& from, const Key& to) {
  if (node->header().level == 0) return sum_leaf(*node, from, to);
  std::uint64_t sum = 0;
  const auto children = node->children();
  const auto level = static_cast<std::uint8_t>(node->header().level - 1);
  for (std::size_t i = child_index(children, from); i < children.size() && children[i].first < to; ++i) {
    const bool is_covered = children[i].first >= from && i + 1 < children.size() && children[i + 1].first <= to;
    if (is_covered) {
      sum += children[i].ref.blocks;
    } else {
      const NodePtr child = TRY(get_child(source, {children, i}, level));
      sum += TRY(sum_blocks(source, child, from, to));
    }
  }
  return sum;
}

// How far the extent that begins before block `at` reaches beyond it.
Result<std::uint64_t> overhang(NodeSource& source, const TreeRoot& root, Ino ino, std::uint64_t at) {
  if (at == 0) return std::uint64_t{0};
  Cursor cursor(source, root);
  TRY(cursor.seek_floor({ino, ItemKind::extent, at - 1}));
  if (!cursor.valid()) return std::uint64_t{0};
  const Key key = cursor.key();
  if (key.ino != ino || key.kind != ItemKind::extent || key.offset >= at) return std::uint64_t{0};
  const std::uint64_t end = key.offset + TRY(format::owned_blocks(cursor.value()));
  return end > at ? end - at : 0;
}

}  // namespace

Result<std::uint64_t> count_blocks(NodeSource& source, const TreeRoot& root, Ino ino, std::uint64_t from,
                                   std::uint64_t to) {
  if (!root.ref || from >= to) return std::uint64_t{0};
  const Key first{ino, ItemKind::extent, from};
  const Key last{ino, ItemKind::extent, to};
  const NodePtr top = TRY(get_root(source, root));
  const std::uint64_t begun = TRY(sum_blocks(source, top, first, last));
  // What reaches in from the left counts, what reaches out to the right does not.
  const std::uint64_t left = TRY(overhang(source, root, ino, from));
  const std::uint64_t right = TRY(overhang(source, root, ino, to));
  if (begun + left < right)
    return Error(Errc::corrupt, fmt::format(".ifile: extents of inode {} overlap near block {}", ino, to));
  return begun + left - right;
}

}  // namespace varve::tree
