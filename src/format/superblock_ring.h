// The superblocks of an area, one after the other: which of them counts.
//
// Each superblock is written twice, into the slot behind the one written last and into the next, with a flush after each. So the
// device sees a stream, and the superblocks before stay where they are until the stream comes round. mkfs fills all slots: one that
// holds no valid superblock of this filesystem is torn or damaged, never just unused.
//
// At most one slot can be torn by a crash: that behind the newest, since nothing else is in flight. Where two behind the newest are
// damaged, both copies of something newer may have stood there, and an older checkpoint must not be taken in their place: what it names may
// have been overwritten since.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "format/superblock.h"

namespace varve::format {

// What stands in a slot. Errc::corrupt: no superblock of the filesystem that `anchor` is of, or one that belongs elsewhere;
// Errc::unknown_feature as decode_superblock(). `slot` is at least its first block.
Result<Superblock> decode_slot(const Superblock& anchor, std::uint64_t index, std::span<const std::byte> slot);

class SuperblockRing {
 public:
  // `slots`: one for each slot of the anchor's area, as decode_slot() or the device says.
  SuperblockRing(const SuperblockArea& area, std::vector<Result<Superblock>> slots);

  // Null if no slot is good.
  const Superblock* newest() const { return newest_; }
  // The slot before the newest's says the same.
  bool is_pair() const;
  // The slots behind the newest are damaged as no crash can have left them.
  bool may_lack_newer() const;
  const Result<Superblock>& before_newest() const { return slot_of(newest_->sequence + area_.slots - 1); }
  const Result<Superblock>& after_newest() const { return slot_of(newest_->sequence + 1); }
  // Of a slot that is of use to nobody: unknown_feature first, since a newer program may have written it.
  const Error* unknown_feature() const;

 private:
  const Result<Superblock>& slot_of(std::uint64_t sequence) const { return slots_[area_.index_of(sequence)]; }

  SuperblockArea area_;
  std::vector<Result<Superblock>> slots_;
  const Superblock* newest_ = nullptr;
};

// A superblock's block, and zeros to the end of its slot.
std::vector<std::byte> encode_slot(const Superblock& super);

}  // namespace varve::format
