// Finding the superblock to believe.
#pragma once

#include <functional>

#include "format/superblock_ring.h"
#include "io/block_device.h"

namespace varve::checkpoint {

struct Superblocks {
  format::Superblock best;
  bool equal = false;  // all copies are there and say the same, and nothing beside them is torn
};

// Reads all copies. Errc::not_varve: neither block 0 nor the last block has the magic, or something else stands in block 0.
// Errc::needs_fsck: no valid superblock is left, or one that is newer than those that are may be missing. Errc::invalid: the
// device is smaller than the filesystem. The message names device, copy and what to do.
Result<Superblocks> read_superblocks(io::BlockDevice& device);

// Which filesystem it is where no superblock can be used: what block 0 says, or else the last block, a copy or the anchor of an area. Its
// state may be that of mkfs. Errc::not_varve as above.
Result<format::Superblock> read_identity(io::BlockDevice& device);

// All slots of an area, of which `anchor` tells the place.
format::SuperblockRing read_ring(io::BlockDevice& device, const format::Superblock& anchor);

// Writes both copies, the second when the first is flushed: whichever write is torn, the other copy has all it needs. In an area
// they go behind that with the number `super.sequence`, and `super` gets the number of the last one.
// `flush` makes durable what was written to the device. Errc::in_use: another program has written one there.
//
// `former_blocks`: the size that the ones before say. Where it changes, the copy at the new end comes first: a torn one in block 0
// then tells of an end at which a good one stands, whichever of both sizes it says.
Status write_superblocks(io::BlockDevice& device, format::Superblock& super, const std::function<Status()>& flush,
                         std::uint64_t former_blocks);

// The same where copies or anchors may be damaged: writes all that there are.
Status restore_superblocks(io::BlockDevice& device, format::Superblock& super, const std::function<Status()>& flush);

// What block 0 and the last block say, where superblocks have an area: for a new name or size, after superblocks with that. The last
// block comes first, unless it alone may be good.
Status write_anchors(io::BlockDevice& device, const format::Superblock& super, const std::function<Status()>& flush);

// A copy or an anchor of this filesystem that counts no more, and is found where block 0 is lost and the device ends there: zeros.
// In its last block, if the filesystem ends before, and in its `former_blocks` - 1 if it did once.
Status wipe_former_ends(io::BlockDevice& device, const format::Superblock& super, std::uint64_t former_blocks);

// Can block 0 or the last one still be read, whatever it says? If not, it is the device that fails and not one of its blocks.
bool device_answers(io::BlockDevice& device, std::uint64_t device_blocks);

}  // namespace varve::checkpoint
