#include "tree/map_tree.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/invariant.h"
#include "io/patient_read.h"
#include "tree/item_merge.h"
#include "tree/item_tree.h"
#include "tree/map_places.h"

namespace varve::tree {

using format::kMapFanout;
using format::MapShape;
using format::NodeRef;

namespace {

constexpr std::size_t kTouchBatch = 256;  // nodes fetched together

Status check_index(const MapShape& shape, std::uint64_t index) {
  if (index < shape.records) return {};
  return Error(Errc::invalid, fmt::format("map: record {} of {}", index, shape.records));
}

using Visitor = std::function<Status(std::uint64_t, std::span<const std::byte>)>;

Status visit_records(const MapRoot& root, const Node& leaf, std::uint64_t index, const Visitor& visit) {
  const std::uint64_t first = first_record(root.shape, 0, index);
  if (first >= root.shape.records) return Error(Errc::corrupt, "map: a leaf beyond the last record");
  const std::uint64_t records = std::min(root.shape.per_leaf(), root.shape.records - first);
  return visit(first, leaf.records().first(records * root.shape.record_bytes));
}

Status scan_node(NodeSource& source, const MapRoot& root, const Node& node, unsigned level, std::uint64_t index,
                 const Visitor& visit) {
  if (level == 0) return visit_records(root, node, index, visit);
  std::vector<NodeWant> wants;
  for (const NodeRef& slot : node.slots())
    if (slot) wants.push_back(want_of(root, slot, level - 1));
  source.prefetch(wants);
  for (std::size_t i = 0; i < node.slots().size(); ++i) {
    if (!node.slots()[i]) continue;
    const std::uint64_t child_index = index * kMapFanout + i;
    const NodePtr child = TRY(get_node(source, root, node.slots()[i], level - 1, child_index));
    TRY(scan_node(source, root, *child, level - 1, child_index, visit));
  }
  return {};
}

}  // namespace

Result<NodeRef> find_map_node(NodeSource& source, const MapRoot& root, std::uint64_t index, std::uint8_t level) {
  TRY(check_index(root.shape, index));
  if (level > root.shape.root_level()) return NodeRef{};
  const std::uint64_t leaf = index / root.shape.per_leaf();
  NodeRef ref = root.ref;
  for (unsigned at = root.shape.root_level(); ref && at > level; --at) {
    const NodePtr node = TRY(get_node(source, root, ref, at, leaf / leaves_below(at)));
    ref = node->slots()[slot_of(leaf / leaves_below(at - 1))];
  }
  return ref;
}

Result<NodePtr> find_map_leaf(NodeSource& source, const MapRoot& root, std::uint64_t index) {
  const NodeRef ref = TRY(find_map_node(source, root, index, 0));
  if (!ref) return NodePtr();
  return get_node(source, root, ref, 0, index / root.shape.per_leaf());
}

Status scan_map(NodeSource& source, const MapRoot& root, const Visitor& visit) {
  if (!root.ref) return {};
  const unsigned level = root.shape.root_level();
  const NodePtr node = TRY(get_node(source, root, root.ref, level, 0));
  return scan_node(source, root, *node, level, 0, visit);
}

MapEditor::MapEditor(NodeSource& source, const MapRoot& root) : source_(source), root_(root) {}

Status MapEditor::touch(std::span<const std::uint64_t> indices, std::uint8_t lowest) {
  for (const std::uint64_t index : indices) TRY(check_index(root_.shape, index));
  // From the root down: the slots of a dirty parent say where the old child is.
  for (int level = static_cast<int>(root_.shape.root_level()); level >= lowest; --level) {
    const std::uint64_t records = leaves_below(static_cast<unsigned>(level)) * root_.shape.per_leaf();
    std::vector<Position> missing;
    for (const std::uint64_t index : indices) {
      const Position position{static_cast<std::uint8_t>(level), index / records};
      if ((missing.empty() || missing.back() != position) && !dirty_.contains(position)) missing.push_back(position);
    }
    std::ranges::sort(missing);
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    TRY(touch_level(static_cast<std::uint8_t>(level), missing));
  }
  return {};
}

Status MapEditor::touch_level(std::uint8_t level, std::span<const Position> missing) {
  while (!missing.empty()) {
    const auto batch = missing.first(std::min(missing.size(), kTouchBatch));
    missing = missing.subspan(batch.size());
    std::vector<NodeWant> wants;
    for (const Position& position : batch)
      if (const NodeRef& ref = old_ref(position); ref && (level > 0 || !deferred_)) wants.push_back(want_of(root_, ref, level));
    if (wants.size() > 1) source_.prefetch(wants);
    for (const Position& position : batch) TRY(load(position));
  }
  return {};
}

const NodeRef& MapEditor::old_ref(const Position& position) const {
  const auto [level, index] = position;
  if (level == root_.shape.root_level()) return root_.ref;
  return dirty_.at({static_cast<std::uint8_t>(level + 1), index / kMapFanout}).slots[slot_of(index)];
}

Result<NodePtr> MapEditor::get_old(const NodeRef& ref, const Position& position) {
  if (!ref) return NodePtr();
  auto node = get_node(source_, root_, ref, position.first, position.second);
  const auto is_bad = [&] { return !node.ok() && may_lose_ && is_of_one_node(node.error()); };
  for (unsigned again = 1; again < io::kPatientAttempts && is_bad(); ++again)  // errors pass, what is given up does not come back
    node = get_node(source_, root_, ref, position.first, position.second);
  if (!is_bad()) return node;
  TRY(may_lose_(ref.address, node.error()));
  return NodePtr();
}

Status MapEditor::load(const Position& position) {
  const auto [level, index] = position;
  const NodeRef& ref = old_ref(position);
  DirtyNode node;
  node.old_address = ref.address;
  if (level > 0) {
    const NodePtr old = TRY(get_old(ref, position));
    node.slots.assign(kMapFanout, NodeRef{});
    if (old) std::ranges::copy(old->slots(), node.slots.begin());
  } else if (!deferred_) {
    TRY(load_records(node, ref, index));
  }
  INVARIANT(dirty_.emplace(position, std::move(node)).second);
  unassigned_.push_back(position);
  return {};
}

Status MapEditor::load_records(DirtyNode& node, const NodeRef& old, std::uint64_t leaf) {
  const NodePtr found = TRY(get_old(old, {std::uint8_t{0}, leaf}));
  node.records = AlignedBuffer::zeroed(format::kNodePayloadBytes);
  if (!found) return {};
  const std::uint64_t per_leaf = root_.shape.per_leaf(), first = leaf * per_leaf;
  const std::uint64_t kept = std::min(per_leaf, end_ - std::min(end_, first));
  std::ranges::copy(found->records().first(kept * root_.shape.record_bytes), node.records.data());
  return {};
}

std::uint64_t MapEditor::end_of_leaves(std::uint64_t first, std::uint64_t leaves) const {
  const std::uint64_t per_leaf = root_.shape.per_leaf();
  std::uint64_t end = first;
  for (auto at = dirty_.lower_bound({0, first / per_leaf}); leaves > 0 && at != dirty_.end(); ++at, --leaves) {
    if (at->first.first > 0) break;
    end = (at->first.second + 1) * per_leaf;
  }
  return end;
}

Status MapEditor::load_leaves(std::uint64_t first, std::uint64_t end) {
  const std::uint64_t per_leaf = root_.shape.per_leaf();
  std::vector<Position> missing;
  for (auto at = dirty_.lower_bound({0, first / per_leaf}); at != dirty_.end(); ++at) {
    const auto& [level, leaf] = at->first;
    if (level > 0 || leaf * per_leaf >= end) break;
    if (at->second.records.size() == 0 && !at->second.written) missing.push_back(at->first);
  }
  for (std::span<const Position> rest = missing; !rest.empty();) {
    const auto batch = rest.first(std::min(rest.size(), kTouchBatch));
    TRY(load_batch(batch));
    rest = rest.subspan(batch.size());
  }
  return {};
}

Status MapEditor::load_batch(std::span<const Position> leaves) {
  std::vector<NodeWant> wants;
  for (const Position& leaf : leaves)
    if (const NodeRef& ref = old_ref(leaf)) wants.push_back(want_of(root_, ref, 0));
  if (wants.size() > 1) source_.prefetch(wants);
  for (const Position& leaf : leaves) {
    TRY(load_records(dirty_.at(leaf), old_ref(leaf), leaf.second));
    INVARIANT(dirty_.at(leaf).records.size() > 0);
    loaded_.push_back(leaf);
  }
  return {};
}

Status MapEditor::write_leaves(NodeSink& sink) {
  AlignedBuffer block(kBlockSize);
  for (const Position& leaf : loaded_) {
    DirtyNode& node = dirty_.at(leaf);
    if (!node.address) return Error(Errc::invalid, "map: a leaf without an address");
    node.written = TRY(write_node(leaf, node, sink, block));
    node.records = {};
  }
  loaded_.clear();
  return {};
}

Status MapEditor::assign(NodeSink& sink, const std::function<void(BlockAddr, std::uint8_t level)>& given) {
  // Taken away first: `given` may touch further nodes, which wait for the next call.
  std::vector<Position> positions;
  positions.swap(unassigned_);
  std::ranges::sort(positions);
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const auto address = sink.allocate();
    if (!address.ok()) {
      unassigned_.insert(unassigned_.end(), positions.begin() + static_cast<std::ptrdiff_t>(i), positions.end());
      return address.error();
    }
    DirtyNode& node = dirty_.at(positions[i]);
    INVARIANT(!node.address);
    node.address = *address;
    if (node.old_address) sink.release(node.old_address, {});
    if (given) given(*address, positions[i].first);
  }
  return {};
}

std::span<std::byte> MapEditor::record(std::uint64_t index) {
  const std::uint64_t per_leaf = root_.shape.per_leaf();
  const auto at = dirty_.find({0, index / per_leaf});
  INVARIANT(index < root_.shape.records);
  if (at == dirty_.end() || at->second.records.size() == 0) return {};
  return at->second.records.span().subspan((index % per_leaf) * root_.shape.record_bytes, root_.shape.record_bytes);
}

Result<MapRoot> MapEditor::write(NodeSink& sink) {
  if (!unassigned_.empty()) return Error(Errc::invalid, "map: a node without an address");
  MapRoot root = root_;
  AlignedBuffer block(kBlockSize);
  for (auto& [position, node] : dirty_) {  // ascending levels
    const auto [level, index] = position;
    if (level == 0 && !node.written && node.records.size() == 0) return Error(Errc::invalid, "map: a leaf without content");
    const NodeRef ref = node.written ? node.written : TRY(write_node(position, node, sink, block));
    if (level == root_.shape.root_level()) root.ref = ref;
    else dirty_.at({static_cast<std::uint8_t>(level + 1), index / kMapFanout}).slots[slot_of(index)] = ref;
  }
  dirty_.clear();
  return root;
}

Result<NodeRef> MapEditor::write_node(const Position& position, const DirtyNode& node, NodeSink& sink,
                                      AlignedBuffer& block) {
  const auto [level, index] = position;
  const std::uint64_t first = first_record(root_.shape, level, index);
  INVARIANT(static_cast<bool>(node.address));
  INVARIANT(level == 0 ? node.records.size() > 0 : node.slots.size() == kMapFanout);
  NodeRef ref{node.address, 0, 0};
  ref.crc = level == 0 ? format::encode_map_leaf(block.span(), node.records.span(), root_.tree, first, sink.identity(),
                                                 sink.serial(), node.address)
                       : format::encode_map_slots(block.span(), node.slots, root_.tree, level, first, sink.identity(),
                                                  sink.serial(), node.address);
  TRY(sink.write(node.address, block.span(), ref.crc, root_.tree, level));
  return ref;
}

}  // namespace varve::tree
