#include "blocks/unit_encoder.h"

#include <lz4.h>
#include <zstd.h>

#include <vector>

#include "base/crc32c.h"
#include "base/invariant.h"

namespace varve::blocks {

struct UnitEncoder::Memory {
  struct Free {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  };
  std::unique_ptr<ZSTD_CCtx, Free> zstd;
  std::vector<std::uint64_t> lz4;

  // How many bytes of `out` they take, or 0: they do not fit.
  std::size_t by_zstd(std::span<const std::byte> content, int level, std::span<std::byte> out) {
    if (!zstd) zstd.reset(ZSTD_createCCtx());
    if (!zstd) return 0;
    const std::size_t bytes = ZSTD_compressCCtx(zstd.get(), out.data(), out.size(), content.data(), content.size(), level);
    return ZSTD_isError(bytes) ? 0 : bytes;
  }

  std::size_t by_lz4(std::span<const std::byte> content, std::span<std::byte> out) {
    if (lz4.empty()) lz4.resize(divide_up(static_cast<std::size_t>(LZ4_sizeofState()), sizeof(std::uint64_t)));
    const auto* from = reinterpret_cast<const char*>(content.data());
    auto* to = reinterpret_cast<char*>(out.data());
    const int bytes = LZ4_compress_fast_extState(lz4.data(), from, to, static_cast<int>(content.size()), static_cast<int>(out.size()), 1);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
  }
};

UnitEncoder::UnitEncoder() : memory_(std::make_unique<Memory>()) {}
UnitEncoder::~UnitEncoder() = default;

std::uint32_t UnitEncoder::encode(std::span<const std::byte> content, const Compression& how, std::span<std::byte> stored) {
  format::UnitHeader header;
  header.blocks = static_cast<std::uint32_t>(content.size() / kBlockSize);
  if (!INVARIANT(content.size() % kBlockSize == 0 && header.blocks <= format::kUnitBlocks)) return 0;
  const std::size_t most_bytes = format::most_stored_blocks(header.blocks) * kBlockSize;
  if (most_bytes == 0 || !INVARIANT(stored.size() >= most_bytes)) return 0;
  const std::span<std::byte> room = stored.subspan(format::kUnitHeaderBytes, most_bytes - format::kUnitHeaderBytes);
  header.coding = how.coding;
  header.coded_bytes = static_cast<std::uint32_t>(how.coding == format::Coding::lz4 ? memory_->by_lz4(content, room)
                                                                                    : memory_->by_zstd(content, how.level, room));
  if (header.coded_bytes == 0) return 0;
  header.crc = crc32c(content);
  format::encode_unit_header(header, stored.first(header.stored_blocks() * kBlockSize));
  return header.stored_blocks();
}

}  // namespace varve::blocks
