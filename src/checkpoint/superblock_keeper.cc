#include "checkpoint/superblock_keeper.h"

#include "base/invariant.h"
#include "checkpoint/superblocks.h"

namespace varve::checkpoint {

format::Superblock SuperblockKeeper::written() const {
  const Lock lock(mutex_);
  format::Superblock super = written_;
  super.label = label_;
  super.uuid = uuid_;
  return super;
}

void SuperblockKeeper::set_label(std::string label) {
  const Lock lock(mutex_);
  label_ = std::move(label);
}

void SuperblockKeeper::set_uuid(const format::Uuid& uuid) {
  const Lock lock(mutex_);
  uuid_ = uuid;
}

Status SuperblockKeeper::write(const format::Superblock& super, const std::function<Status()>& flush) {
  format::Superblock next = super;
  bool renamed = false;
  std::uint64_t former_blocks = 0;
  {
    const Lock lock(mutex_);
    former_blocks = written_.device_blocks;
    renamed = super.label != written_.label || super.uuid != written_.uuid;
    next.sequence = written_.sequence;  // there may have been others since `super` was begun
    const bool follows = INVARIANT(super.serial >= written_.serial) && INVARIANT(super.lsn >= written_.lsn) &&
                         INVARIANT(super.clock >= written_.clock) && INVARIANT(super.next_ino >= written_.next_ino) &&
                         INVARIANT(super.identity == written_.identity);
    if (!follows) return Error(Errc::io, "the superblock to be written does not follow the one before");
  }
  TRY(write_superblocks(device_, next, flush, former_blocks));
  {
    const Lock lock(mutex_);
    written_ = next;
  }
  const bool resized = next.device_blocks != former_blocks;
  if (renamed || resized) TRY(write_anchors(device_, next, flush));
  return resized ? wipe_former_ends(device_, next, former_blocks) : Status();
}

Status SuperblockKeeper::restore(const std::function<Status()>& flush) {
  format::Superblock again = written();
  TRY(restore_superblocks(device_, again, flush));
  const Lock lock(mutex_);
  written_ = again;
  return {};
}

void SuperblockKeeper::count_recovery() {
  const Lock lock(mutex_);
  ++written_.lifetime.recoveries;
}

void SuperblockKeeper::set_group_centres(const GroupCentres& centres) {
  const Lock lock(mutex_);
  centres_ = centres;
}

GroupCentres SuperblockKeeper::group_centres() const {
  const Lock lock(mutex_);
  return centres_;
}

void SuperblockKeeper::set_scrub_mark(const format::ScrubMark& mark) {
  const Lock lock(mutex_);
  scrub_ = mark;
}

format::ScrubMark SuperblockKeeper::scrub_mark() const {
  const Lock lock(mutex_);
  return scrub_;
}

void SuperblockKeeper::set_costs(const format::WritingCosts& costs) {
  const Lock lock(mutex_);
  costs_ = costs;
}

format::WritingCosts SuperblockKeeper::costs() const {
  const Lock lock(mutex_);
  return costs_;
}

}  // namespace varve::checkpoint
