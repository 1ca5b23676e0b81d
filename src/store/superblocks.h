// Finding the superblock to believe.
#pragma once

#include <functional>

#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::store {

struct Superblocks {
  format::Superblock best;
  bool equal = false;  // both copies are there and say the same
};

// Reads both copies. Errc::not_varve: neither has the magic, or something else stands where the first should be;
// Errc::needs_fsck: no valid one is left; Errc::invalid: the device is smaller than the filesystem. The message names device,
// copy and what to do.
Result<Superblocks> read_superblocks(io::BlockDevice& device);

// Writes both copies, the second when the first is flushed: whichever write is torn, the other copy has all it needs.
// `flush` makes durable what was written to the device.
Status write_superblocks(io::BlockDevice& device, const format::Superblock& super, const std::function<Status()>& flush);

// Can either copy still be read, whatever it says? If not, it is the device that fails and not one of its blocks.
bool device_answers(io::BlockDevice& device, std::uint64_t device_blocks);

}  // namespace varve::store
