#include "blocks/unit_decoder.h"

#include <fmt/format.h>
#include <lz4.h>
#include <zstd.h>

#include "base/crc32c.h"
#include "format/unit.h"

namespace varve::blocks {

namespace {

Error damaged(const char* what) { return {Errc::corrupt, fmt::format("unit: {}", what)}; }

Status by_lz4(std::span<const std::byte> coded, std::span<std::byte> content) {
  const int bytes = LZ4_decompress_safe(reinterpret_cast<const char*>(coded.data()), reinterpret_cast<char*>(content.data()),
                                        static_cast<int>(coded.size()), static_cast<int>(content.size()));
  if (bytes != static_cast<int>(content.size())) return damaged("its bytes do not decode to its length (lz4)");
  return {};
}

}  // namespace

struct UnitDecoder::Memory {
  struct Free {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  };
  std::unique_ptr<ZSTD_DCtx, Free> zstd;

  // The library would take several frames in a row, and such that hold nothing: a unit is one.
  Status by_zstd(std::span<const std::byte> coded, std::span<std::byte> content) {
    if (!zstd) zstd.reset(ZSTD_createDCtx());
    if (!zstd) return Errc::no_memory;
    if (ZSTD_findFrameCompressedSize(coded.data(), coded.size()) != coded.size()) return damaged("its bytes are not one frame (zstd)");
    const std::size_t bytes = ZSTD_decompressDCtx(zstd.get(), content.data(), content.size(), coded.data(), coded.size());
    if (bytes != content.size()) return damaged("its bytes do not decode to its length (zstd)");
    return {};
  }
};

UnitDecoder::UnitDecoder() : memory_(std::make_unique<Memory>()) {}
UnitDecoder::~UnitDecoder() = default;

Result<AlignedBuffer> UnitDecoder::decode(std::span<const std::byte> stored) {
  const format::UnitHeader header = TRY(format::decode_unit_header(stored));
  AlignedBuffer content(header.blocks * kBlockSize);
  const auto coded = format::coded_bytes_of(header, stored);
  TRY(header.coding == format::Coding::lz4 ? by_lz4(coded, content.span()) : memory_->by_zstd(coded, content.span()));
  if (crc32c(content.span()) != header.crc) return damaged("its content has another checksum");
  return content;
}

}  // namespace varve::blocks
