#include "base/crc32c.h"

#include <isa-l/crc.h>

namespace varve {

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed) {
  // libisal takes and gives the raw register: invert on both sides for the standard CRC-32C.
  auto* bytes = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(data.data()));
  return ~crc32_iscsi(bytes, static_cast<int>(data.size()), ~seed);
}

}  // namespace varve
