#include "format/map_writer.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::format {

namespace {

using Level = std::map<std::uint64_t, NodeRef>;  // by index of the node in its level

class MapWriter {
 public:
  MapWriter(TreeId tree, const MapShape& shape, const NodeIdentity& identity, BlockAddr next, std::vector<MadeNode>& out)
      : tree_(tree), shape_(shape), identity_(identity), next_(next), out_(out) {}

  Level add_leaves(const MapRecords& records);
  Level add_level(std::uint8_t level, std::uint64_t records_per_node, const Level& below);

 private:
  MadeNode& add() {
    const BlockAddr address = next_;
    ++next_;
    return out_.emplace_back(MadeNode{address, {}});
  }

  TreeId tree_;
  const MapShape& shape_;
  const NodeIdentity& identity_;
  BlockAddr next_;
  std::vector<MadeNode>& out_;
};

Level MapWriter::add_leaves(const MapRecords& records) {
  std::map<std::uint64_t, std::vector<std::byte>> payloads;
  for (const auto& [index, bytes] : records) {
    auto& payload = payloads[index / shape_.per_leaf()];
    payload.resize(shape_.per_leaf() * shape_.record_bytes);
    std::ranges::copy(bytes, payload.begin() + static_cast<std::ptrdiff_t>(index % shape_.per_leaf() * shape_.record_bytes));
  }
  Level refs;
  for (const auto& [index, payload] : payloads) {
    MadeNode& node = add();
    refs[index] = {node.address, encode_map_leaf(node.bytes, payload, tree_, index * shape_.per_leaf(), identity_.identity,
                                                 identity_.serial, node.address), 0};
  }
  return refs;
}

Level MapWriter::add_level(std::uint8_t level, std::uint64_t records_per_node, const Level& below) {
  std::map<std::uint64_t, std::vector<NodeRef>> slots;
  for (const auto& [index, ref] : below) {
    auto& node = slots[index / kMapFanout];
    node.resize(kMapFanout);
    node[index % kMapFanout] = ref;
  }
  Level refs;
  for (const auto& [index, children] : slots) {
    MadeNode& node = add();
    refs[index] = {node.address, encode_map_slots(node.bytes, children, tree_, level, index * records_per_node,
                                                  identity_.identity, identity_.serial, node.address), 0};
  }
  return refs;
}

}  // namespace

NodeRef write_map(TreeId tree, const MapShape& shape, const MapRecords& records, const NodeIdentity& identity,
                  BlockAddr next, std::vector<MadeNode>& out) {
  INVARIANT(!records.empty());
  MapWriter writer(tree, shape, identity, next, out);
  Level level = writer.add_leaves(records);
  std::uint64_t records_per_node = shape.per_leaf();
  for (unsigned i = 1; i <= shape.root_level(); ++i) {
    records_per_node *= kMapFanout;
    level = writer.add_level(static_cast<std::uint8_t>(i), records_per_node, level);
  }
  return level.at(0);
}

}  // namespace varve::format
