// A map of another size: levels come or go above, what stands beyond its end goes.
#include <algorithm>
#include <utility>

#include "base/invariant.h"
#include "tree/item_merge.h"
#include "tree/map_places.h"

namespace varve::tree {

using format::kMapFanout;
using format::MapShape;
using format::NodeRef;

Status MapEditor::reshape(const MapShape& shape, NodeSink& sink) {
  INVARIANT(dirty_.empty() && shape.record_bytes == root_.shape.record_bytes && shape.records > 0);
  const unsigned before = root_.shape.root_level(), after = shape.root_level();
  const bool shrinks = shape.records < root_.shape.records;
  if (after < before) TRY(descend(before, after, sink));
  root_.shape = shape;
  if (after > before) add_levels(before, after);
  return shrinks ? clear_from(shape.records, sink) : Status();
}

// The first slot of each new node holds the one below; that of the lowest the old root, which does not change itself.
void MapEditor::add_levels(unsigned from, unsigned to) {
  if (!root_.ref) return;
  for (unsigned level = from + 1; level <= to; ++level) {
    const Position position{static_cast<std::uint8_t>(level), 0};
    DirtyNode node;
    node.slots.assign(kMapFanout, NodeRef{});
    if (level == from + 1) node.slots[0] = root_.ref;
    dirty_.emplace(position, std::move(node));
    unassigned_.push_back(position);
  }
}

Status MapEditor::descend(unsigned from, unsigned to, NodeSink& sink) {
  NodeRef ref = root_.ref;
  for (unsigned level = from; level > to && ref; --level) {
    const NodePtr node = TRY(get_old(ref, {static_cast<std::uint8_t>(level), 0}));
    sink.release(ref.address, {});
    ref = node ? node->slots()[0] : NodeRef{};
    for (std::size_t slot = 1; node && slot < kMapFanout; ++slot)
      TRY(release_below(node->slots()[slot], {static_cast<std::uint8_t>(level - 1), slot}, sink));
  }
  root_.ref = ref;
  return {};
}

// The nodes on the way to the last record that stays are written anew; what hangs on their further slots goes.
Status MapEditor::clear_from(std::uint64_t record, NodeSink& sink) {
  end_ = std::min(end_, record);
  if (!root_.ref || record == 0) return {};
  const std::uint64_t last = (record - 1) / root_.shape.per_leaf();
  TRY(touch(record - 1));
  for (unsigned level = root_.shape.root_level(); level > 0; --level) {
    const std::uint64_t index = last / leaves_below(level), kept = last / leaves_below(level - 1) + 1;
    DirtyNode& node = dirty_.at({static_cast<std::uint8_t>(level), index});
    for (std::uint64_t child = kept; child < (index + 1) * kMapFanout; ++child) {
      NodeRef& slot = node.slots[slot_of(child)];
      TRY(release_below(std::exchange(slot, NodeRef{}), {static_cast<std::uint8_t>(level - 1), child}, sink));
    }
  }
  return {};
}

// Leaves are not read for that.
Status MapEditor::release_below(const NodeRef& ref, const Position& position, NodeSink& sink) {
  if (!ref) return {};
  sink.release(ref.address, {});
  const auto [level, index] = position;
  if (level == 0) return {};
  const NodePtr node = TRY(get_old(ref, position));
  if (!node) return {};
  std::vector<NodeWant> wants;
  if (level > 1)
    for (const NodeRef& slot : node->slots())
      if (slot) wants.push_back(want_of(root_, slot, level - 1U));
  if (wants.size() > 1) source_.prefetch(wants);
  for (std::size_t slot = 0; slot < kMapFanout; ++slot)
    TRY(release_below(node->slots()[slot], {static_cast<std::uint8_t>(level - 1), index * kMapFanout + slot}, sink));
  return {};
}

}  // namespace varve::tree
