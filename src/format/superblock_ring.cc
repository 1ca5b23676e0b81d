#include "format/superblock_ring.h"

#include "base/invariant.h"

namespace varve::format {

Result<Superblock> decode_slot(const Superblock& anchor, std::uint64_t index, std::span<const std::byte> slot) {
  auto super = decode_superblock(slot);
  if (super.fails_with(Errc::not_varve)) return Error(Errc::corrupt, "no superblock in its slot");
  if (!super.ok()) return super;
  if (super->identity != anchor.identity) return Error(Errc::corrupt, "superblock of another filesystem");
  if (super->area != anchor.area || super->first_segment != anchor.first_segment || super->segment_blocks != anchor.segment_blocks)
    return Error(Errc::corrupt, "superblock: of another geometry than block 0 says");  // its size may change
  if (super->sequence == 0 || anchor.area.index_of(super->sequence) != index)
    return Error(Errc::corrupt, fmt::format("superblock: number {} belongs in another slot", super->sequence));
  return super;
}

SuperblockRing::SuperblockRing(const SuperblockArea& area, std::vector<Result<Superblock>> slots)
    : area_(area), slots_(std::move(slots)) {
  INVARIANT(slots_.size() == area_.slots);
  for (const Result<Superblock>& slot : slots_)
    if (slot.ok() && (!newest_ || slot->sequence > newest_->sequence)) newest_ = &*slot;
}

bool SuperblockRing::is_pair() const {
  if (!newest_ || newest_->sequence < 2) return false;
  const Result<Superblock>& before = slot_of(newest_->sequence - 1);
  return before.ok() && before->sequence == newest_->sequence - 1 && same_but_for_sequence(*before, *newest_);
}

bool SuperblockRing::may_lack_newer() const {
  return newest_ && !slot_of(newest_->sequence + 1).ok() && !slot_of(newest_->sequence + 2).ok();
}

const Error* SuperblockRing::unknown_feature() const {
  for (const Result<Superblock>& slot : slots_)
    if (!slot.ok() && slot.error().is(Errc::unknown_feature)) return &slot.error();
  return nullptr;
}

std::vector<std::byte> encode_slot(const Superblock& super) {
  std::vector<std::byte> slot(super.area.slot_blocks * kBlockSize);
  encode_superblock(super, slot);
  return slot;
}

}  // namespace varve::format
