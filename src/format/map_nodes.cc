// Nodes of the maps: radix trees over fixed-size records.
#include "base/invariant.h"
#include "format/codec.h"
#include "format/node_block.h"

namespace varve::format {

namespace {

bool is_map(TreeId tree) { return tree == TreeId::reverse_map || tree == TreeId::free_map; }

}  // namespace

unsigned MapShape::root_level() const {
  unsigned level = 0;
  for (std::uint64_t below = leaves(); below > 1; below = (below + kMapFanout - 1) / kMapFanout) ++level;
  return level;
}

Result<std::vector<NodeRef>> decode_map_slots(std::span<const std::byte> block, const NodeHeader& header) {
  if (!is_map(header.tree) || header.level == 0)
    return corrupt("node at block {}: not an interior node of a map", header.address);
  if (header.count != kMapFanout || header.used != kMapFanout * kMapSlotBytes)
    return corrupt("node at block {}: {} slots in {} bytes", header.address, header.count, header.used);
  std::vector<NodeRef> slots(kMapFanout);
  Reader in(used_payload(block, header));
  for (unsigned i = 0; i < kMapFanout; ++i) {
    slots[i].address = BlockAddr{in.u48()};
    slots[i].crc = in.u32();
    in.u16();
    if (!slots[i] && slots[i].crc != 0) return corrupt("node at block {}: half a reference in slot {}", header.address, i);
  }
  return slots;
}

std::uint32_t encode_map_slots(std::span<std::byte> block, std::span<const NodeRef> slots, TreeId tree,
                               std::uint8_t level, std::uint64_t first_record, std::uint64_t identity, Serial serial,
                               BlockAddr address) {
  INVARIANT(slots.size() <= kMapFanout && is_map(tree) && level > 0);
  std::array<std::byte, kMapFanout * kMapSlotBytes> payload;
  Writer out(payload);
  for (const NodeRef& slot : slots) {
    out.put48(slot.address.v);
    out.put(slot ? slot.crc : 0U);
    out.put(std::uint16_t{0});
  }
  out.skip_to(payload.size());
  const NodeHeader header{.identity = identity, .serial = serial, .address = address, .tree = tree, .level = level,
                          .count = kMapFanout, .used = payload.size(), .first = {Ino{0}, ItemKind{}, first_record}};
  return write_node(block, header, payload);
}

std::span<const std::byte> map_leaf_records(std::span<const std::byte> block) {
  return block.subspan(kNodeHeaderBytes, kNodePayloadBytes);
}

std::uint32_t encode_map_leaf(std::span<std::byte> block, std::span<const std::byte> records, TreeId tree,
                              std::uint64_t first_record, std::uint64_t identity, Serial serial, BlockAddr address) {
  INVARIANT(records.size() <= kNodePayloadBytes && is_map(tree));
  const NodeHeader header{.identity = identity, .serial = serial, .address = address, .tree = tree, .level = 0,
                          .count = 0, .used = static_cast<std::uint16_t>(records.size()),
                          .first = {Ino{0}, ItemKind{}, first_record}};
  return write_node(block, header, records);
}

}  // namespace varve::format
