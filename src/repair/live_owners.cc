#include "repair/live_owners.h"

#include "check/map_walk.h"

namespace varve::repair {

bool for_each_owner(io::BlockDevice& device, const format::Superblock& super,
                    const std::function<void(BlockAddr, const format::ReverseEntry&)>& visit) {
  bool complete = true;
  check::Report scratch;
  scratch.super = super;
  const check::CheckOptions options;
  check::Context silent{device, options, nullptr, scratch};
  const auto free_shape = format::free_map_shape(super.segments, super.segment_blocks);
  const auto reverse_shape = format::reverse_map_shape(super.device_blocks);
  check::MapWalk free(silent, format::TreeId::free_map, super.free_map, free_shape);
  check::MapWalk reverse(silent, format::TreeId::reverse_map, super.reverse_map, reverse_shape);
  std::vector<bool> bits(super.segments * super.segment_blocks);
  free.visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
    if (records.empty()) complete = false;
    for (std::uint64_t s = 0; !records.empty() && s < free_shape.per_leaf() && first + s < super.segments; ++s) {
      const auto map = records.subspan(s * free_shape.record_bytes + format::kSegmentRecordHeaderBytes);
      for (std::uint64_t i = 0; i < super.segment_blocks; ++i)
        bits[(first + s) * super.segment_blocks + i] = std::to_integer<unsigned>(map[i / 8]) >> (i % 8) & 1;
    }
  });
  reverse.visit_leaves([&](std::uint64_t first, std::span<const std::byte> records) {
    if (records.empty()) complete = false;
    for (std::uint64_t i = 0; i < records.size() / format::kReverseEntryBytes; ++i) {
      const BlockAddr address{first + i};
      if (address < super.first_segment || address - super.first_segment >= bits.size()) continue;
      if (!bits[address - super.first_segment]) continue;
      const auto entry = format::decode_reverse_entry(records.subspan(i * format::kReverseEntryBytes, format::kReverseEntryBytes));
      // A mount that met a damaged part of the map has gone on with one in which nobody owns anything.
      if (!entry.ok() || entry->owner == format::Owner::none) complete = false;
      else visit(address, *entry);
    }
  });
  return complete && scratch.errors() == 0;
}

}  // namespace varve::repair
