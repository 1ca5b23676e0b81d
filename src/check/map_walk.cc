#include "check/map_walk.h"

namespace varve::check {

namespace {

// Nodes of one level that `count` leaves need.
std::uint64_t nodes_at(std::uint64_t leaves, unsigned level) {
  for (; level > 0; --level) leaves = (leaves + format::kMapFanout - 1) / format::kMapFanout;
  return leaves;
}

std::uint64_t records_below(const format::MapShape& shape, unsigned level) {
  std::uint64_t records = shape.per_leaf();
  for (; level > 0; --level) records *= format::kMapFanout;
  return records;
}

}  // namespace

void MapWalk::claim_nodes(Claims& claims) {
  const Subtree root{root_, 0};
  if (root_ && claim(claims, root_.address, shape_.root_level())) claim_below(claims, {&root, 1}, shape_.root_level());
}

void MapWalk::visit_leaves(const LeafVisitor& visitor) {
  const Subtree root{root_, 0};
  if (root_) visit_below({&root, 1}, shape_.root_level(), visitor);
}

bool MapWalk::claim(Claims& claims, BlockAddr address, unsigned level) {
  const Claim outcome = claims.claim_node(address, tree_, level);
  if (outcome == Claim::good) return true;
  if (outcome == Claim::outside) context_.add(Code::address_outside, {address, {}}, "of a node of a map");
  context_.incomplete = true;
  return false;
}

// The nodes are claimed already; what stands below them is not.
void MapWalk::claim_below(Claims& claims, std::span<const Subtree> nodes, unsigned level) {
  if (level == 0) return;
  const NodeBatch batch = fetch(nodes, level);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (!batch.nodes[i].good || !is_well_placed(batch.nodes[i], nodes[i].index, level)) {
      context_.incomplete = true;
      continue;
    }
    std::vector<Subtree> entered;
    for (const Subtree& child : children_of(batch.nodes[i], nodes[i].index, level))
      if (claim(claims, child.ref.address, level - 1)) entered.push_back(child);
    claim_below(claims, entered, level - 1);
  }
}

void MapWalk::visit_below(std::span<const Subtree> nodes, unsigned level, const LeafVisitor& visitor) {
  const NodeBatch batch = fetch(nodes, level);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const FetchedNode& node = batch.nodes[i];
    if (level > 0) {
      if (node.good) visit_below(children_of(node, nodes[i].index, level), level - 1, visitor);
      continue;
    }
    const bool good = node.good && is_well_placed(node, nodes[i].index, level);
    visitor(nodes[i].index * shape_.per_leaf(), good ? format::map_leaf_records(node.block) : std::span<const std::byte>{});
  }
}

NodeBatch MapWalk::fetch(std::span<const Subtree> nodes, unsigned level) {
  std::vector<format::NodeRef> refs;
  for (const Subtree& node : nodes) refs.push_back(node.ref);
  return reader_.fetch(refs, tree_, level);
}

bool MapWalk::is_well_placed(const FetchedNode& node, std::uint64_t index, unsigned level) {
  const std::uint64_t expected = index * records_below(shape_, level);
  const format::Key& first = node.header.first;
  if (first == format::Key{{}, {}, expected}) return true;
  const bool is_key = first.offset == expected;
  context_.add(Code::map_node_misplaced, {node.header.address, {}},
               is_key ? "its first key is no record's" : fmt::format("starts at record {} instead of {}", first.offset, expected));
  return false;
}

std::vector<MapWalk::Subtree> MapWalk::children_of(const FetchedNode& node, std::uint64_t index, unsigned level) {
  std::vector<Subtree> children;
  const auto slots = format::decode_map_slots(node.block, node.header);
  if (!slots.ok()) {
    context_.add(Code::node_damaged, {node.header.address, {}}, slots.error().message());
    context_.incomplete = true;
    return children;
  }
  for (std::uint64_t i = 0; i < slots->size(); ++i) {
    const std::uint64_t child = index * format::kMapFanout + i;
    if (!(*slots)[i]) continue;
    if (child >= nodes_at(shape_.leaves(), level - 1))
      context_.add(Code::map_beyond_end, {node.header.address, {}}, fmt::format("slot {}", i));
    else
      children.push_back({(*slots)[i], child});
  }
  return children;
}

}  // namespace varve::check
