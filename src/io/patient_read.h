// Reading for callers that take what cannot be read for lost: errors pass, as when a path fails over or a sector is weak, and
// what is given up does not come back.
#pragma once

#include "io/block_device.h"

namespace varve::io {

inline constexpr unsigned kPatientAttempts = 4;

// As BlockDevice::read, but a read that fails is repeated. Meant for single blocks: where a larger range fails, the blocks
// of it that can be read are wanted first.
Status read_patiently(BlockDevice& device, std::uint64_t offset, std::span<std::byte> out);

}  // namespace varve::io
