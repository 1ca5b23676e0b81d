// CRC-32C (Castagnoli, RFC 3720), hardware-accelerated by libisal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace varve {

std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t seed = 0);

}  // namespace varve
