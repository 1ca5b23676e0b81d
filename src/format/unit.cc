#include "format/unit.h"

#include <algorithm>

#include "base/invariant.h"
#include "format/codec.h"
#include "format/fields.h"

namespace varve::format {

namespace {

bool is_known_coding(std::uint8_t coding) {
  return coding == static_cast<std::uint8_t>(Coding::zstd) || coding == static_cast<std::uint8_t>(Coding::lz4);
}

bool is_zero(std::span<const std::byte> bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

void encode_unit_header(const UnitHeader& header, std::span<std::byte> stored) {
  MEMORY_INVARIANT(stored.size() == header.stored_blocks() * kBlockSize);
  Writer out(stored);
  out.put(kUnitMagic);
  out.put(static_cast<std::uint8_t>(header.coding));
  out.put(static_cast<std::uint8_t>(header.blocks));
  out.put(std::uint16_t{0});
  out.put(header.coded_bytes);
  out.put(header.crc);
  std::ranges::fill(stored.subspan(kUnitHeaderBytes + header.coded_bytes), std::byte{0});
}

Result<UnitHeader> decode_unit_header(std::span<const std::byte> stored) {
  Reader in(stored);
  const std::uint32_t magic = in.u32();
  const std::uint8_t coding = in.u8();
  UnitHeader header;
  header.blocks = in.u8();
  in.skip_to(8);
  header.coded_bytes = in.u32();
  header.crc = in.u32();
  if (!in.ok() || magic != kUnitMagic) return corrupt("unit: not the blocks of a coded unit");
  if (!is_known_coding(coding)) return corrupt("unit: unknown coding {}", coding);
  header.coding = static_cast<Coding>(coding);
  if (header.blocks < 2 || header.blocks > kUnitBlocks) return corrupt("unit: stands for {} blocks", header.blocks);
  if (header.coded_bytes == 0 || header.coded_bytes > stored.size() - kUnitHeaderBytes)
    return corrupt("unit: {} coded bytes in {} bytes", header.coded_bytes, stored.size());
  if (stored.size() != header.stored_blocks() * kBlockSize || header.stored_blocks() > most_stored_blocks(header.blocks))
    return corrupt("unit: {} blocks stored in {} bytes", header.blocks, stored.size());
  if (!is_zero(stored.subspan(kUnitHeaderBytes + header.coded_bytes))) return corrupt("unit: bytes behind its end");
  return header;
}

std::span<const std::byte> coded_bytes_of(const UnitHeader& header, std::span<const std::byte> stored) {
  return stored.subspan(kUnitHeaderBytes, header.coded_bytes);
}

}  // namespace varve::format
