#include "tree/pair_walk.h"

#include <algorithm>

namespace varve::tree {

using format::ChildRef;
using format::ItemRef;
using format::Key;

std::span<const ItemRef> PairWalk::Stretch::items_of(const NodePtr& leaf) const {
  if (!leaf) return {};
  const auto items = leaf->items();
  const auto first = std::ranges::lower_bound(items, from, {}, &ItemRef::key);
  const auto last = std::ranges::lower_bound(first, items.end(), bound, {}, &ItemRef::key);
  return {first, last};
}

PairWalk::Child PairWalk::Path::child_at(const Key& at) {
  while (!frames.empty() && frames.back().bound <= at) frames.pop_back();
  if (frames.empty()) return {{format::kMinKey, side.root.ref}, side.root.ref ? side.root.level : std::uint8_t{0}, true, format::kMaxKey};
  const Frame& frame = frames.back();
  const auto children = frame.node->children();
  const std::size_t i = child_index(children, at);
  const Key bound = i + 1 < children.size() ? std::min(children[i + 1].first, frame.bound) : frame.bound;
  return {children[i], static_cast<std::uint8_t>(frame.node->header().level - 1), false, bound};
}

Result<NodePtr> PairWalk::Path::read(const Child& child) const {
  if (!child.ref.ref) return NodePtr();
  if (child.is_root) return get_root(side.source, side.root);
  return get_child(side.source, side.root.tree, child.ref, child.level);
}

Status PairWalk::Path::enter(const Child& child) {
  frames.push_back({TRY(read(child)), child.bound});
  return {};
}

Result<bool> PairWalk::are_same(const Child& before, const Child& after) const {
  const format::NodeRef &one = before.ref.ref, &other = after.ref.ref;
  if (!one || before.level != after.level || one.address != other.address || one.crc != other.crc) return false;
  return same_(one, other);
}

// Children of both that may be read next, those that differ only.
void PairWalk::look_ahead() {
  constexpr std::size_t kMost = 16;
  const auto children = [&](const Path& path) { return path.frames.back().node->children(); };
  const auto ask = [&](Path& path, const Path& other) {
    std::vector<NodeWant> wants;
    const auto mine = children(path), theirs = children(other);
    const auto level = static_cast<std::uint8_t>(path.frames.back().node->header().level - 1);
    for (std::size_t i = child_index(mine, position_); i < mine.size() && wants.size() < kMost; ++i) {
      const std::size_t at = child_index(theirs, mine[i].first);
      if (theirs[at].ref.address != mine[i].ref.address) wants.push_back({mine[i].ref, path.side.root.tree, level});
    }
    if (wants.size() > 1) path.side.source.prefetch(wants);
  };
  ask(before_, after_);
  ask(after_, before_);
}

Result<std::optional<PairWalk::Stretch>> PairWalk::next() {
  while (position_ < format::kMaxKey) {
    const Child before = before_.child_at(position_), after = after_.child_at(position_);
    const Key bound = std::min(before.bound, after.bound);
    if ((!before.ref.ref && !after.ref.ref) || TRY(are_same(before, after))) {
      position_ = bound;
      continue;
    }
    nodes_ += (before.level >= after.level) + (after.level >= before.level);
    if (before.level == 0 && after.level == 0) {
      NodePtr was = TRY(before_.read(before)), is = TRY(after_.read(after));
      Stretch stretch{std::move(was), std::move(is), position_, bound};
      position_ = bound;
      return std::optional(std::move(stretch));
    }
    const bool both = before.level == after.level;
    if (before.level >= after.level) TRY(before_.enter(before));
    if (both) {
      const Status entered = after_.enter(after);
      if (!entered.ok()) {
        before_.frames.pop_back();  // not one without the other
        return entered.error();
      }
      look_ahead();
    } else if (after.level > before.level) {
      TRY(after_.enter(after));
    }
  }
  return std::optional<Stretch>();
}

}  // namespace varve::tree
