#include "scrub/walk.h"

#include <algorithm>

#include <fmt/format.h>

#include "device/faults.h"
#include "format/item.h"
#include "store/store.h"
#include "tree/trees.h"

namespace varve::scrub {

using format::Key;
using format::TreeId;

namespace {

std::optional<TreeId> next_tree(TreeId tree) {
  switch (tree) {
    case TreeId::inode_file: return TreeId::reverse_map;
    case TreeId::reverse_map: return TreeId::free_map;
    case TreeId::free_map: return TreeId::snapshots;
    default: return std::nullopt;
  }
}

constexpr Key map_key(std::uint64_t record) { return {Ino{0}, static_cast<format::ItemKind>(0), record}; }

}  // namespace

Walk::Walk(store::Store& store, const Position& from, Report report)
    : store_(store), position_(from), report_(std::move(report)), kept_(store) {}

// --- which checkpoint ---------------------------------------------------------------------------------------------------

void Walk::refresh() {
  const Gate::Pass pass(store_.gate());
  if (store_.trees().view().serial == view_.serial) return;
  view_ = store_.trees().view();
  kept_.look_at(view_, snapshots::SnapshotList(store_.snapshots().list()));
  path_.clear();
  leaf_.reset();
}

bool Walk::is_current() {
  const Gate::Pass pass(store_.gate());
  return store_.trees().view().serial == view_.serial;
}

void Walk::begin_tree(TreeId tree) {
  position_ = {tree, format::kMinKey};
  left_ = 0;
  path_.clear();
  leaf_.reset();
}

const tree::MapRoot& Walk::map() const {
  return position_.tree == TreeId::reverse_map ? view_.reverse_map : view_.free_map;
}

format::NodeRef Walk::root() const {
  if (is_map()) return map().ref;
  return position_.tree == TreeId::snapshots ? view_.tables.root : view_.inode_file.ref;
}

std::uint8_t Walk::root_level() const {
  if (is_map()) return static_cast<std::uint8_t>(map().shape.root_level());
  return position_.tree == TreeId::snapshots ? view_.tables.level : view_.inode_file.level;
}

// --- a step ---------------------------------------------------------------------------------------------------------------

Walk::Step Walk::step() {
  step_ = {};
  const std::uint64_t reads = kept_.reads();
  refresh();
  for (std::uint64_t looks = 0; looks < kStepBlocks && step_.blocks < kStepBlocks && !step_.done; ++looks) {
    if (leaf_) {
      verify_leaf();
      if (!is_current()) break;
    } else if (!find_leaf()) {
      break;
    }
  }
  step_.looked_up = kept_.reads() - reads;
  return step_;
}

// Goes down one node towards the leaf that holds position_.next, or on to the next tree. False: the view is outdated.
bool Walk::find_leaf() {
  while (!path_.empty() && path_.back().bound <= position_.next) path_.pop_back();
  if (path_.empty()) {
    if (position_.next != format::kMaxKey && root())
      return enter({root(), format::kMinKey, format::kMaxKey}, root_level(), true);
    const auto next = next_tree(position_.tree);
    if (next) begin_tree(*next);
    else step_.done = true;
    return true;
  }
  const Frame& frame = path_.back();
  if (const auto child = next_child(frame))
    return enter(*child, static_cast<std::uint8_t>(frame.node->header().level - 1), false);
  position_.next = frame.bound;  // nothing but zeros behind here
  return true;
}

bool Walk::enter(const Child& child, std::uint8_t level, bool is_root) {
  auto node = read_node(child, level, is_root);
  if (node.ok()) {
    if (level == 0)
      leaf_ = Frame{std::move(*node), child.bound};
    else
      path_.push_back({std::move(*node), child.bound});
    return true;
  }
  if (!is_current()) return false;
  report_node(child, level, node.error());
  position_.next = child.bound;
  left_ = 0;
  return true;
}

std::uint64_t Walk::records_below(unsigned level) const {
  std::uint64_t records = map().shape.per_leaf();
  for (; level > 0; --level) records *= format::kMapFanout;
  return records;
}

// The first child that reaches beyond the position.
std::optional<Walk::Child> Walk::next_child(const Frame& frame) const {
  const tree::Node& node = *frame.node;
  if (!is_map()) {
    const auto children = node.children();
    const std::size_t at = tree::child_index(children, position_.next);
    return Child{children[at].ref, children[at].first, at + 1 < children.size() ? children[at + 1].first : frame.bound};
  }
  const std::uint64_t span = records_below(node.header().level - 1u);
  for (std::size_t i = 0; i < node.slots().size(); ++i) {
    const std::uint64_t first = node.header().first.offset + i * span;
    const Key bound = map_key(first + span);
    if (node.slots()[i] && position_.next < bound)
      return Child{node.slots()[i], map_key(first), std::min(bound, frame.bound)};
  }
  return std::nullopt;
}

// From the device, whatever the cache holds.
Result<tree::NodePtr> Walk::read_node(const Child& child, std::uint8_t level, bool is_root) {
  AlignedBuffer block(kBlockSize);
  const BlockAddr place = TRY(place_of(child.ref));
  ++step_.blocks;
  const Status read = store_.device().read(place.v << kBlockShift, block.span());
  if (!read.ok()) {
    ++step_.unreadable;
    return read.error();
  }
  tree::NodePtr node = TRY(tree::Node::decode(
      std::move(block), {store_.trees().cache().identity(), child.ref.address, child.ref.crc, position_.tree, level}));
  if (!is_root && node->header().first != child.first)
    return Error(Errc::corrupt, "begins with another key than its parent says");
  return node;
}

Result<BlockAddr> Walk::place_of(const format::NodeRef& ref) {
  if (!shows_snapshot()) return ref.address;
  const auto moved = TRY(kept_.moved(ref.address, 1));
  return moved.empty() ? ref.address : moved.begin()->second;
}

void Walk::report_node(const Child& child, std::uint8_t level, const Error& error) {
  store_.faults().note(error.code(), child.ref.address, {});
  Finding finding;
  finding.kind = Finding::Kind::node;
  finding.address = child.ref.address;
  finding.error = error.message();
  finding.tree = position_.tree;
  finding.level = level;
  finding.first = std::max(child.first, position_.next);
  finding.bound = child.bound;
  report_(finding);
}

}  // namespace varve::scrub
