#include "format/chunk.h"

#include "base/invariant.h"
#include "format/codec.h"
#include "format/fields.h"

namespace varve::format {

namespace {

constexpr std::size_t kChunkCrcAt = 4;

struct ParsedChunk {
  std::uint32_t crc = 0;
  ChunkHeader header;
};

Run get_short_run(Reader& in) {
  Run run;
  run.start = BlockAddr{in.u48()};
  run.blocks = in.u32();
  return run;
}

void put_short_run(Writer& to, const Run& run) {
  to.put48(run.start.v);
  to.put(run.blocks);
}

Result<ParsedChunk> parse_chunk(std::span<const std::byte> block) {
  if (block.size() < kBlockSize) return corrupt("chunk: only {} bytes of a block", block.size());
  Reader in(block.first(kChunkHeaderBytes));
  if (in.u32() != kChunkMagic) return corrupt("chunk: no magic");
  ParsedChunk raw;
  raw.crc = in.u32();
  ChunkHeader& h = raw.header;
  h.identity = in.u64();
  h.epoch = in.u64();
  h.lsn = Lsn{in.u64()};
  h.previous_crc = in.u32();
  h.header_blocks = in.u16();
  in.u16();
  h.payload_blocks = in.u32();
  h.record_bytes = in.u32();
  h.address = BlockAddr{in.u48()};
  h.run = get_short_run(in);
  h.next_run = get_short_run(in);
  h.durable = Lsn{in.u64()};
  h.settled = Serial{in.u64()};
  h.clock = in.u64();
  h.next_ino = in.u64();
  h.payload_crc = in.u32();
  h.elsewhere = get_short_run(in);
  return raw;
}

bool is_sane(const Run& run) { return run.blocks <= kMaxSegmentBlocks && run.end().v <= kMaxAddress; }

Status check_ranges(const ChunkHeader& h) {
  if (h.header_blocks == 0 || h.header_blocks > kMaxLongHeaderBlocks)
    return corrupt("chunk: header of {} blocks", h.header_blocks);
  if (h.record_bytes > h.header_blocks * kBlockSize - kChunkHeaderBytes)
    return corrupt("chunk: {} bytes of records in {} blocks", h.record_bytes, h.header_blocks);
  if (!is_sane(h.run) || !is_sane(h.next_run) || !is_sane(h.elsewhere)) return corrupt("chunk: impossible run");
  if (h.payload_blocks > h.run.blocks) return corrupt("chunk: payload of {} blocks", h.payload_blocks);
  if (!h.address || h.address < h.run.start || h.end() > h.run.end())
    return corrupt("chunk: blocks {}+{} are not inside its run {}+{}", h.address, h.total_blocks(), h.run.start,
                   h.run.blocks);
  if (h.next_ino > kMostNextIno) return corrupt("chunk {}: impossible next inode number {}", h.lsn, h.next_ino);
  if (h.clock > 2 * kMostCount) return corrupt("chunk {}: impossible log clock {}", h.lsn, h.clock);
  if (!h.lsn || h.durable >= h.lsn) return corrupt("chunk {}: says that chunk {} is durable", h.lsn, h.durable);
  return {};
}

}  // namespace

std::uint32_t encode_chunk(const ChunkHeader& h, std::span<const std::byte> records, std::span<std::byte> out) {
  INVARIANT(h.record_bytes == records.size() && h.header_blocks * kBlockSize >= kChunkHeaderBytes + records.size());
  out = out.first(h.header_blocks * kBlockSize);
  Writer to(out);
  to.put(kChunkMagic);
  to.put(std::uint32_t{0});
  to.put(h.identity);
  to.put(h.epoch);
  to.put(h.lsn.v);
  to.put(h.previous_crc);
  to.put(h.header_blocks);
  to.put(std::uint16_t{0});
  to.put(h.payload_blocks);
  to.put(h.record_bytes);
  to.put48(h.address.v);
  put_short_run(to, h.run);
  put_short_run(to, h.next_run);
  to.put(h.durable.v);
  to.put(h.settled.v);
  to.put(h.clock);
  to.put(h.next_ino);
  to.put(h.payload_crc);
  put_short_run(to, h.elsewhere);
  to.skip_to(kChunkHeaderBytes);
  to.put_bytes(records);
  to.skip_to(out.size());
  INVARIANT(to.ok());
  const std::uint32_t crc = crc32c(out);
  store32(out, kChunkCrcAt, crc);
  return crc;
}

Result<ChunkHeader> peek_chunk(std::span<const std::byte> first_block) {
  const ParsedChunk raw = TRY(parse_chunk(first_block));
  TRY(check_ranges(raw.header));
  return raw.header;
}

Result<Chunk> decode_chunk(std::span<const std::byte> blocks) {
  const ParsedChunk raw = TRY(parse_chunk(blocks));
  TRY(check_ranges(raw.header));
  const std::size_t bytes = raw.header.header_blocks * kBlockSize;
  if (blocks.size() < bytes) return corrupt("chunk {}: {} of {} header bytes", raw.header.lsn, blocks.size(), bytes);
  if (crc_without_field(blocks.first(bytes), kChunkCrcAt) != raw.crc)
    return corrupt("chunk {} at block {}: CRC does not match its bytes", raw.header.lsn, raw.header.address);
  return Chunk{raw.header, raw.crc, blocks.subspan(kChunkHeaderBytes, raw.header.record_bytes)};
}

}  // namespace varve::format
