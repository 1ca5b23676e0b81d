// The one primitive of cleaning: read, verify, carry the stored CRC, write, then, if the block is still there, log the
// move (H34, H35). A bad block is not moved; it pins its segment and is reported.
#pragma once

#include <vector>

#include "meta/store.h"

namespace varve::cleaner {

// A file block that stood at `address` in the last merged checkpoint.
struct LiveBlock {
  BlockAddr address;
  Ino ino;
  std::uint64_t block = 0;
  std::uint32_t clock = 0;
  std::uint32_t crc = 0;
  std::uint8_t estimate = 0;
};

class Mover {
 public:
  explicit Mover(meta::Store& store);

  // The file blocks of a segment, by the maps of the newest checkpoint and without those that a delta has replaced.
  Result<std::vector<LiveBlock>> live_blocks(SegmentId segment);
  // Moves them to the head of `group`; the checkpoint that follows is to evacuate `nodes` tree nodes, too. Errc::no_space:
  // it could run out of segments.
  Status move(std::span<const LiveBlock> blocks, unsigned group, std::uint64_t nodes);

 private:
  static constexpr std::size_t kBatchBlocks = 64;
  bool still_there(const meta::Inode& inode, const LiveBlock& block) const;
  Status move_batch(std::span<const LiveBlock> blocks, unsigned group, std::uint64_t nodes);
  Status read_batch(std::span<const LiveBlock> blocks, AlignedBuffer& memory);
  Status apply(const LiveBlock& block, BlockAddr to);

  meta::Store& store_;
  meta::BlockingSource source_;
};

}  // namespace varve::cleaner
