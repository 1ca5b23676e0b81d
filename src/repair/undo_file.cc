#include "repair/undo_file.h"

#include <algorithm>

#include "base/buffer.h"
#include "base/crc32c.h"
#include "format/codec.h"
#include "format/superblock.h"

namespace varve::repair {

namespace {

constexpr std::uint64_t kMagic = 0x324E'5545'5652'4156ULL;  // "VARVEUN2"
constexpr std::size_t kHeaderCrcAt = kUndoHeaderBytes - 4;

std::uint32_t crc_of(const UndoRecord& record, std::span<const std::byte> payload) {
  std::array<std::byte, 20> fields;
  format::Writer out(fields);
  out.put(record.first);
  out.put(record.blocks);
  out.put(record.sequence);
  return crc32c(payload, crc32c(fields));
}

}  // namespace

std::array<std::byte, kUndoHeaderBytes> encode_undo_header(const UndoHeader& header) {
  std::array<std::byte, kUndoHeaderBytes> bytes{};
  format::Writer out(bytes);
  out.put(kMagic);
  out.put(header.device_blocks);
  out.put(header.identity);
  out.put(std::uint32_t{0});
  out.put(crc32c(std::span<const std::byte>(bytes).first(kHeaderCrcAt)));
  return bytes;
}

Result<UndoHeader> decode_undo_header(std::span<const std::byte> bytes) {
  format::Reader in(bytes);
  if (bytes.size() < kUndoHeaderBytes || in.u64() != kMagic) return Error(Errc::invalid, "not an undo file");
  UndoHeader header;
  header.device_blocks = in.u64();
  header.identity = in.u64();
  in.u32();
  if (in.u32() != crc32c(bytes.first(kHeaderCrcAt))) return Error(Errc::invalid, "the undo file is damaged at its start");
  return header;
}

std::array<std::byte, kUndoRecordBytes> encode_undo_record(const UndoRecord& record, std::span<const std::byte> payload) {
  std::array<std::byte, kUndoRecordBytes> bytes;
  format::Writer out(bytes);
  out.put(record.first);
  out.put(record.blocks);
  out.put(crc_of(record, payload));
  out.put(record.sequence);
  return bytes;
}

UndoRecord decode_undo_record(std::span<const std::byte> bytes) {
  format::Reader in(bytes);
  UndoRecord record;
  record.first = in.u64();
  record.blocks = in.u32();
  record.crc = in.u32();
  record.sequence = in.u64();
  return record;
}

bool is_whole(const UndoRecord& record, std::span<const std::byte> payload) { return record.crc == crc_of(record, payload); }

std::uint64_t filesystem_on(io::BlockDevice& device) {
  AlignedBuffer block(kBlockSize);
  const std::uint64_t blocks = device.geometry().blocks();
  for (const std::uint64_t at : {std::uint64_t{0}, blocks - std::min<std::uint64_t>(blocks, 1)}) {
    if (!device.read(at * kBlockSize, block.span()).ok()) continue;
    if (const auto super = format::decode_superblock(block.span()); super.ok()) return super->identity;
  }
  return 0;
}

}  // namespace varve::repair
