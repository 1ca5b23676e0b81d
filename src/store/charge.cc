#include "store/charge.h"

#include <algorithm>

#include "base/invariant.h"
#include "store/admission.h"
#include "store/headroom.h"

namespace varve::store {

Charge::Charge(const format::Superblock& super, const Trees& trees, const Changes& changes, const Staging& staging)
    : capacity_(super.segments * super.segment_blocks),
      reserve_(reserved_segments(super.segments) * super.segment_blocks),
      trees_(trees),
      changes_(changes),
      staging_(staging) {
  INVARIANT(capacity_ > 0 && reserve_ > 0);
}

std::uint64_t Charge::charge(Counted counted) const {
  const TreeView& view = trees_.view();
  auto data = static_cast<std::int64_t>(view.data_blocks + view.reserved_blocks);
  auto standing = static_cast<std::int64_t>(view.live_blocks + view.reserved_blocks);
  changes_.for_each_above(view.generation, [&](const Delta& delta) {
    std::int64_t change = delta.data_change.load(std::memory_order_relaxed);
    if (counted == Counted::at_best) change -= static_cast<std::int64_t>(delta.uncertain.load(std::memory_order_relaxed));
    data += change;
    standing += change + change / 64 + static_cast<std::int64_t>(leaves_of(delta.blob_bytes.load(std::memory_order_relaxed)));
  });
  data = std::max<std::int64_t>(data, 0);
  // A block's worst-case share of leaves and of the reverse map; an inode's of its items, entries and index. Names,
  // targets and attribute sets can be longer than that share: then what really stands there counts.
  const std::int64_t shares = data + data / 64 + static_cast<std::int64_t>(inodes()) / 12;
  const std::int64_t all = std::max(shares, standing);
  // Nodes are written anew wherever they change, so what is full of them needs more slack than what is full of data.
  return static_cast<std::uint64_t>(all + std::max<std::int64_t>(all - data, 0) / 8) + 64;
}

std::uint64_t Charge::inodes() const {
  const TreeView& view = trees_.view();
  auto inodes = static_cast<std::int64_t>(view.inodes);
  changes_.for_each_above(view.generation, [&](const Delta& delta) { inodes += delta.inode_change.load(std::memory_order_relaxed); });
  return static_cast<std::uint64_t>(std::max<std::int64_t>(inodes, 0));
}

bool Charge::has_room(Counted counted, std::uint64_t blocks, std::uint64_t inodes) const {
  if (reserve_ >= capacity_ || (inodes && staging_.next_ino() >= format::kInoLimit)) return false;
  return charge(counted) + blocks + inodes <= capacity_ - reserve_;
}

bool Charge::fits_at_best(const Demand& demand) const {
  return has_room(Counted::at_best, demand.new_blocks + demand.new_blocks / 64, demand.new_inodes);
}

bool Charge::fits(const Demand& demand) const {
  std::uint64_t assumed = 0;
  changes_.for_each_above(trees_.view().generation,
                          [&](const Delta& delta) { assumed += delta.assumed.load(std::memory_order_relaxed); });
  return has_room(Counted::at_worst, assumed + demand.new_blocks + demand.new_blocks / 64, demand.new_inodes);
}

}  // namespace varve::store
