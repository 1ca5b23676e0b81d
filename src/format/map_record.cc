#include "format/map_record.h"

#include "format/codec.h"
#include "format/fields.h"

namespace varve::format {

void encode_reverse_entry(const ReverseEntry& e, std::span<std::byte> record) {
  Writer out(record.first(kReverseEntryBytes));
  out.put(static_cast<std::uint8_t>(e.owner));
  if (e.owner == Owner::file_block) {
    out.put(e.estimate);
    out.put(e.ino.v);
    out.put48(e.block);
    out.put(e.clock);
    out.put(e.crc);
  } else if (e.owner == Owner::node) {
    out.put(static_cast<std::uint8_t>(e.tree));
    out.put(e.level);
  }
  out.skip_to(kReverseEntryBytes);
}

Result<ReverseEntry> decode_reverse_entry(std::span<const std::byte> record) {
  if (record.size() < kReverseEntryBytes) return corrupt(".mfile entry: only {} bytes", record.size());
  Reader in(record.first(kReverseEntryBytes));
  ReverseEntry e;
  e.owner = static_cast<Owner>(in.u8());
  if (e.owner > Owner::super_image)
    return corrupt(".mfile entry: unknown owner {}", static_cast<unsigned>(e.owner));
  if (e.owner == Owner::file_block) {
    e.estimate = in.u8();
    e.ino = Ino{in.u64()};
    e.block = in.u48();
    e.clock = in.u32();
    e.crc = in.u32();
    if (!e.ino || e.block >= kMaxFileBlocks) return corrupt(".mfile entry: block {} of inode {}", e.block, e.ino);
  } else if (e.owner == Owner::node) {
    e.tree = static_cast<TreeId>(in.u8());
    e.level = in.u8();
    const bool has_nodes = e.tree >= TreeId::inode_file && (e.tree <= TreeId::free_map || e.tree == TreeId::snapshots);
    if (!has_nodes || e.level > kMaxTreeLevel)
      return corrupt(".mfile entry: node of tree {} at level {}", static_cast<unsigned>(e.tree), e.level);
  }
  return e;
}

MapShape reverse_map_shape(std::uint64_t device_blocks) { return {kReverseEntryBytes, device_blocks}; }

void encode_segment_record(const SegmentRecord& r, std::span<std::byte> bytes) {
  Writer out(bytes.first(kSegmentRecordHeaderBytes));
  out.put(r.group);
  out.put(r.flags);
  out.put(std::uint16_t{0});
  out.put(r.live);
  out.put(r.youngest);
  out.put(std::uint32_t{0});
  out.put(r.clock_sum);
  out.put(r.rate_sum);
}

Result<SegmentRecord> decode_segment_record(std::span<const std::byte> bytes) {
  if (bytes.size() < kSegmentRecordHeaderBytes) return corrupt(".ffile record: only {} bytes", bytes.size());
  Reader in(bytes);
  SegmentRecord r;
  r.group = in.u8();
  r.flags = in.u8();
  in.u16();
  r.live = in.u32();
  r.youngest = in.u32();
  in.u32();
  r.clock_sum = in.u64();
  r.rate_sum = in.u64();
  if (r.group >= kMaxGroups && r.group != kGroupChain && r.group != kGroupNodes)
    return corrupt(".ffile record: unknown group {}", r.group);
  if (r.flags & ~kSegmentHasBadBlocks) return corrupt(".ffile record: unknown flags {:#x}", r.flags);
  if (r.live > kMaxSegmentBlocks) return corrupt(".ffile record: {} live blocks", r.live);
  return r;
}

MapShape free_map_shape(std::uint64_t segments, std::uint32_t segment_blocks) {
  return {segment_record_bytes(segment_blocks), segments};
}

}  // namespace varve::format
