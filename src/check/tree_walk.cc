#include "check/tree_walk.h"

namespace varve::check {

using format::Key;
using format::NodeRef;

bool TreeWalk::run() {
  if (!tree_.root) return true;
  const Way way = claim(tree_.root.address, tree_.level);
  if (way == Way::barred) {
    skip();
    return false;
  }
  const NodeBatch root = reader_.fetch({&tree_.root, 1}, tree_.tree, tree_.level);
  if (way == Way::shared) return root.nodes[0].good;  // what is below has been walked, but it may be another one than is meant
  if (root.nodes[0].good) walk(root.nodes[0], tree_.root, {format::kMinKey, format::kMaxKey});
  else skip();
  return root.nodes[0].good;
}

// Barred: not to be entered, because it has another owner already; this also bounds the work on crafted images.
TreeWalk::Way TreeWalk::claim(BlockAddr address, unsigned level) {
  const BlockAddr place = tree_.place_of ? tree_.place_of(address) : address;
  const Claim outcome = claims_.claim_node(place, tree_.tree, level, tree_.kept);
  if (outcome == Claim::good) {
    context_.update("inodes", ++nodes_, context_.super().live_blocks - context_.super().data_blocks);
    return Way::in;
  }
  if (outcome == Claim::shared) return Way::shared;
  if (outcome == Claim::twice && tree_.kept) context_.add(Code::claimed_twice, {place, {}}, "a node of its tree should be there");
  if (outcome == Claim::outside) context_.add(Code::address_outside, {place, {}}, fmt::format("of a node of {}", name_of(tree_.tree)));
  return Way::barred;
}

std::uint64_t TreeWalk::walk(const FetchedNode& node, const NodeRef& ref, const Range& range) {
  const bool was_complete = !is_torn();
  const std::uint64_t blocks = node.header.level == 0 ? walk_leaf(node, range) : walk_interior(node, range);
  const bool complete = was_complete && !is_torn();
  if (complete && blocks != ref.blocks)
    context_.add(Code::block_sum_wrong, {ref.address, {}}, fmt::format("{} instead of {}", ref.blocks, blocks));
  return blocks;
}

void TreeWalk::check_range(const FetchedNode& node, const Key& first, const Key& last, const Range& range) {
  if (first < range.lower || last >= range.upper)
    context_.add(Code::keys_out_of_order, {node.header.address, {}},
                 fmt::format("inodes {} to {}, its place is for {} to {}", first.ino, last.ino, range.lower.ino,
                             range.upper.ino));
}

// A search goes by the parent's key and expects to find it there.
void TreeWalk::check_first(const FetchedNode& node, const Key& key, const Range& range) {
  const Key& first = node.header.first;
  if (first != key && first >= range.lower && first < range.upper)  // what is beyond has been said
    context_.add(Code::keys_out_of_order, {node.header.address, {}},
                 fmt::format("begins with inode {}, its parent says {}", first.ino, key.ino));
}

void TreeWalk::skip() {
  (tree_.kept ? context_.kept_damaged : context_.incomplete) = true;
  visitor_.gap();
}

void TreeWalk::give_up(BlockAddr address, const Error& error) {
  context_.add(Code::node_damaged, {address, {}}, error.message());
  skip();
}

std::uint64_t TreeWalk::walk_leaf(const FetchedNode& node, const Range& range) {
  const auto items = format::decode_items(node.block, node.header);
  if (!items.ok()) {
    give_up(node.header.address, items.error());
    return 0;
  }
  check_range(node, items->front().key, items->back().key, range);
  std::uint64_t blocks = 0;
  for (const format::ItemRef& item : *items) blocks += visitor_.visit(item, node.header.address);
  return blocks;
}

std::uint64_t TreeWalk::walk_interior(const FetchedNode& node, const Range& range) {
  const auto children = format::decode_children(node.block, node.header);
  if (!children.ok()) {
    give_up(node.header.address, children.error());
    return 0;
  }
  const unsigned level = node.header.level - 1U;
  std::vector<NodeRef> refs;
  std::vector<Range> ranges;
  std::vector<Way> ways;
  for (std::size_t i = 0; i < children->size(); ++i) {
    const format::ChildRef& child = (*children)[i];
    ways.push_back(claim(child.ref.address, level));
    refs.push_back(child.ref);
    // The first child stands for everything from the start of its parent's range.
    ranges.push_back({i == 0 ? range.lower : child.first, i + 1 < children->size() ? (*children)[i + 1].first : range.upper});
  }
  // Beyond the first: the parent's keys must themselves lie in the parent's range.
  if (children->size() > 1) check_range(node, (*children)[1].first, children->back().first, range);
  std::uint64_t blocks = 0;
  const NodeBatch batch = reader_.fetch(refs, tree_.tree, level);
  for (std::size_t i = 0; i < refs.size(); ++i) {
    if (ways[i] == Way::shared) {
      if (batch.nodes[i].good) check_first(batch.nodes[i], (*children)[i].first, ranges[i]);
      blocks += refs[i].blocks;
      continue;
    }
    if (ways[i] == Way::barred || !batch.nodes[i].good) {
      skip();
      continue;
    }
    check_first(batch.nodes[i], (*children)[i].first, ranges[i]);
    blocks += walk(batch.nodes[i], refs[i], ranges[i]);
  }
  return blocks;
}

}  // namespace varve::check
