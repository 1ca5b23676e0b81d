#include "tree/node_packer.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/invariant.h"
#include "format/item.h"

namespace varve::tree {

using format::ChildRef;
using format::ItemKind;
using format::Key;
using format::kNodePayloadBytes;

namespace {

Error out_of_order(const Node& node) {
  return Error(Errc::corrupt,
               fmt::format("{} node at block {}: reaches into its right neighbour", name_of(node.header().tree), node.header().address));
}

}  // namespace

NodePacker::ItemValue::ItemValue(std::span<const std::byte> value) : size_(value.size()) {
  if (size_ > short_.size()) long_ = std::make_unique<std::byte[]>(size_);
  std::ranges::copy(value, long_ ? long_.get() : short_.data());
}

NodePacker::NodePacker(NodeSource& source, NodeSink& sink, format::TreeId tree, const MergeOptions& options)
    : source_(source), sink_(sink), tree_(tree), options_(options), block_(kBlockSize) {}

PackQueue<NodePacker::ChildValue>& NodePacker::children(unsigned level) {
  MEMORY_INVARIANT(level > 0 && level <= format::kMaxTreeLevel + 2U);
  while (children_.size() < level) children_.emplace_back();
  return children_[level - 1];
}

std::size_t NodePacker::waiting_bytes(unsigned level) const {
  if (level == 0) return items_.bytes();
  return level <= children_.size() ? children_[level - 1].bytes() : 0;
}

bool NodePacker::is_empty_above(unsigned level) const {
  for (std::size_t i = level; i < children_.size(); ++i)
    if (!children_[i].empty()) return false;
  return true;
}

std::size_t NodePacker::fill_bytes() const {
  return static_cast<std::size_t>(static_cast<double>(kNodePayloadBytes) * std::clamp(options_.fill, 0.5, 1.0));
}

bool NodePacker::is_underfilled(unsigned level) const {
  const std::size_t waiting = waiting_bytes(level);
  return waiting > 0 && static_cast<double>(waiting) < static_cast<double>(kNodePayloadBytes) * options_.refill;
}

Status NodePacker::add_item(const Key& key, std::span<const std::byte> value) {
  INVARIANT(items_.empty() || items_.back().key < key);
  items_.push_back(key, ItemValue(value));
  while (items_.bytes() >= 2 * fill_bytes()) TRY(write_node(0, fill_bytes()));
  return {};
}

Status NodePacker::add_old_child(unsigned level, const ChildRef& child) { return push_child(level, child, true); }

Status NodePacker::push_child(unsigned level, const ChildRef& child, bool is_old) {
  auto& queue = children(level);
  INVARIANT(queue.empty() || queue.back().key < child.first);
  INVARIANT(static_cast<bool>(child.ref.address));
  queue.push_back(child.first, {child.ref, is_old});
  while (queue.bytes() >= 2 * fill_bytes()) TRY(write_node(level, fill_bytes()));
  return {};
}

Result<bool> NodePacker::settle(unsigned level) {
  while (is_underfilled(level))
    if (!TRY(take_left(level))) return false;
  TRY(flush(level, false));
  return true;
}

Status NodePacker::settle_anyway(unsigned level) {
  for (unsigned below = 0; below <= level; ++below) TRY(flush(below, false));
  return {};
}

// Takes apart the old node that stands before what waits at `level`. False if there is none, if this merge wrote it, or if it is
// bad: then it stays as it is.
Result<bool> NodePacker::take_left(unsigned level) {
  if (level >= children_.size()) return false;
  auto& above = children(level + 1);
  if (above.empty() && !TRY(take_left(level + 1))) return false;
  if (!above.back().value.is_old) return false;
  const ChildRef child{above.back().key, above.back().value.ref};
  const auto node = get_child(source_, tree_, child, static_cast<std::uint8_t>(level));
  if (!node.ok() && is_of_one_node(node.error())) return false;
  if (!node.ok()) return node.error();
  TRY(prepend(level, **node));
  INVARIANT(!above.empty());
  above.pop_back();
  sink_.release(child.ref.address, (*node)->header().serial);
  return true;
}

Status NodePacker::prepend(unsigned level, const Node& node) {
  if (level == 0) {
    if (!items_.empty() && node.items().back().key >= items_.front().key) return out_of_order(node);
    const auto items = node.items();
    for (auto item = items.rbegin(); item != items.rend(); ++item)
      items_.push_front(item->key, ItemValue(item->value));
  } else {
    auto& queue = children(level);
    if (!queue.empty() && node.children().back().first >= queue.front().key) return out_of_order(node);
    const auto children = node.children();
    for (auto child = children.rbegin(); child != children.rend(); ++child)
      queue.push_front(child->first, {child->ref, true});
  }
  return {};
}

// At the right edge of the tree nodes are filled one after the other, because that is where files and inodes grow;
// elsewhere evenly, so that both halves have room.
Status NodePacker::flush(unsigned level, bool is_right_edge) {
  while (const std::size_t waiting = waiting_bytes(level)) {
    const std::size_t nodes = waiting <= kNodePayloadBytes ? 1 : (waiting + fill_bytes() - 1) / fill_bytes();
    const std::size_t even = nodes == 1 ? kNodePayloadBytes : waiting / nodes;
    TRY(write_node(level, is_right_edge && nodes > 1 ? fill_bytes() : even));
  }
  return {};
}

Status NodePacker::write_node(unsigned level, std::size_t target) {
  const ChildRef written = TRY(level == 0 ? write_leaf(target) : write_interior(level, target));
  return push_child(level + 1, written, false);
}

Result<ChildRef> NodePacker::write_leaf(std::size_t target) {
  format::LeafBuilder builder(tree_);
  std::size_t n = 0;
  std::uint64_t blocks = 0;
  for (const std::size_t cut = items_.cut(target); n < cut; ++n) {
    const auto& item = items_[n];
    if (!builder.add(item.key, item.value.span())) break;
    if (item.key.kind == ItemKind::extent) blocks += TRY(format::owned_blocks(item.value.span()));
  }
  if (n == 0) return Error(Errc::invalid, "an item that is too big for a leaf");
  const BlockAddr address = TRY(sink_.allocate());
  ChildRef child{items_.front().key, {address, 0, blocks}};
  child.ref.crc = builder.finish(block_.span(), sink_.identity(), sink_.serial(), address);
  TRY(sink_.write(address, block_.span(), child.ref.crc, tree_, 0));
  INVARIANT(n <= items_.size());
  items_.pop_front(n);
  return child;
}

Result<ChildRef> NodePacker::write_interior(unsigned level, std::size_t target) {
  auto& queue = children(level);
  format::InteriorBuilder builder(tree_);
  std::size_t n = 0;
  for (const std::size_t cut = queue.cut(target); n < cut; ++n)
    if (!builder.add({queue[n].key, queue[n].value.ref})) break;
  if (level > format::kMaxTreeLevel) return Error(Errc::invalid, "a tree with too many levels");
  const auto node_level = static_cast<std::uint8_t>(level);
  const BlockAddr address = TRY(sink_.allocate());
  ChildRef child{builder.first(), {address, 0, builder.blocks()}};
  child.ref.crc = builder.finish(block_.span(), node_level, sink_.identity(), sink_.serial(), address);
  TRY(sink_.write(address, block_.span(), child.ref.crc, tree_, node_level));
  INVARIANT(n > 0 && n <= queue.size());
  queue.pop_front(n);
  return child;
}

Result<TreeRoot> NodePacker::finish() {
  for (unsigned level = 0;; ++level) {
    if (level > 0 && children(level).size() == 1 && is_empty_above(level)) {
      const ChildValue& only = children(level).front().value;
      return root_of(only.ref, only.is_old, level - 1);
    }
    if (waiting_bytes(level) == 0 && is_empty_above(level)) return TreeRoot{{}, 0, tree_};
    TRY(flush(level, true));
  }
}

// An old node that became the root may itself have a single child.
Result<TreeRoot> NodePacker::root_of(const format::NodeRef& ref, bool is_old, unsigned level) {
  TreeRoot root{ref, static_cast<std::uint8_t>(level), tree_};
  while (is_old && root.level > 0) {
    const NodePtr node = TRY(get_root(source_, root));
    if (node->children().size() > 1) break;
    sink_.release(root.ref.address, node->header().serial);
    root = {node->children().front().ref, static_cast<std::uint8_t>(root.level - 1), tree_};
  }
  return root;
}

}  // namespace varve::tree
