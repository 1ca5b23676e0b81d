#include "space/charge.h"

#include <algorithm>
#include <cstring>

#include "base/invariant.h"
#include "base/types.h"
#include "changes/changes.h"
#include "changes/delta.h"
#include "changes/staging.h"
#include "format/layout.h"
#include "format/superblock.h"
#include "segments/segment_table.h"
#include "snapshots/snapshots.h"
#include "space/admission.h"
#include "space/headroom.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::space {

Charge::Charge(const segments::SegmentTable& segments, const tree::Trees& trees, const snapshots::Snapshots& snapshots,
               const changes::Changes& changes, const changes::Staging& staging)
    : segments_(segments), trees_(trees), snapshots_(snapshots), changes_(changes), staging_(staging) {
  INVARIANT(capacity_blocks() > 0 && reserve_blocks() > 0);
}

bool Charge::has_estimates() const { return changes_.any(); }

std::uint64_t Charge::segments() const {
  const std::uint64_t aim = aim_.load(std::memory_order_relaxed), count = segments_.geometry().count;
  return aim ? std::min(aim, count) : count;
}

std::uint64_t Charge::capacity_blocks() const { return segments() * segments_.geometry().blocks; }
std::uint64_t Charge::reserve_blocks() const { return reserved_segments(segments()) * segments_.geometry().blocks; }

std::uint64_t Charge::fewest_segments() const {
  const std::uint64_t needed = divide_up(charge(Counted::at_best), segments_.geometry().blocks);
  // What is left beside the reserve grows with their number.
  std::uint64_t low = format::kFewestSegments, high = 2 * (needed + format::kFewestSegments);
  const auto has_room = [&](std::uint64_t segments) {
    const std::uint64_t reserved = reserved_segments(segments);
    return segments > reserved && segments - reserved >= needed;
  };
  while (low < high) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (has_room(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

std::uint64_t Charge::charge(Counted counted) const {
  const tree::TreeView& view = trees_.view();
  auto data = static_cast<std::int64_t>(view.data_blocks + view.reserved_blocks);
  const std::uint64_t listed = counted == Counted::without_automatic ? view.automatic.most : view.automatic.blocks;
  const std::uint64_t loose = std::min(listed - std::min(listed, held_blocks()), std::min(view.tables.held_blocks, view.live_blocks));
  auto held = static_cast<std::int64_t>(view.tables.held_blocks - loose);
  auto standing = static_cast<std::int64_t>(view.live_blocks - loose + view.reserved_blocks);
  changes_.for_each_above(view.generation, [&](const changes::Delta& delta) {
    std::int64_t change = delta.data_change.load(std::memory_order_relaxed);
    if (counted == Counted::at_best) change -= static_cast<std::int64_t>(delta.uncertain.load(std::memory_order_relaxed));
    data += change;
    if (view.tables.root || snapshots_.any()) {  // the first one may be under way
      const auto kept = static_cast<std::int64_t>(delta.kept.load(std::memory_order_relaxed));
      const auto freed = static_cast<std::int64_t>(delta.freed.load(std::memory_order_relaxed));
      held += counted == Counted::at_best ? std::min(freed, kept) : kept;
      standing += counted == Counted::at_best ? std::min(freed, kept) : kept;
    }
    standing += change + change / 64 + static_cast<std::int64_t>(leaves_of(delta.blob_bytes.load(std::memory_order_relaxed)));
  });
  data = std::max<std::int64_t>(data, 0);
  // A block's worst-case share of leaves and of the reverse map; an inode's of its items, entries and index. Names,
  // targets and attribute sets can be longer than that share: then what really stands there counts.
  const std::int64_t shares = data + data / 64 + static_cast<std::int64_t>(inodes()) / 12;
  const std::int64_t all = std::max(shares + held, standing);
  // Nodes are written anew wherever they change, so what is full of them needs more slack than what is full of data.
  const std::uint64_t owed =
      view.automatic.has_permanent ? owed_to_snapshots(static_cast<std::uint64_t>(data), view.automatic.shared_for_good) : 0;
  return static_cast<std::uint64_t>(all + std::max<std::int64_t>(all - data - held, 0) / 8) + 64 + owed;
}

// What deletes may still make the filesystem keep: a second version of each node that a snapshot shares, and lists of dead blocks.
std::uint64_t Charge::owed_to_snapshots(std::uint64_t data, std::uint64_t shared_nodes) const {
  constexpr std::uint64_t kRunsOfNode = 256;
  return shared_nodes + data / kRunsOfNode;
}

bool Charge::fits_snapshot() const { return fits_kept(0); }

bool Charge::fits_kept(std::uint64_t listed) const {
  const tree::TreeView& view = trees_.view();
  listed -= std::min(listed, held_blocks());  // perhaps of this one, and charged already
  const std::uint64_t nodes = view.node_blocks();
  const std::uint64_t owed = view.automatic.has_permanent ? nodes - std::min(nodes, view.automatic.shared_for_good) : nodes_to_hold();
  return has_room(Counted::at_worst, owed + listed, 0);
}

std::uint64_t Charge::nodes_to_hold() const { return owed_to_snapshots(trees_.view().data_blocks, trees_.view().node_blocks()); }

std::uint64_t Charge::free_blocks() const {
  const std::uint64_t capacity = capacity_blocks(), taken = reserve_blocks() + charge(Counted::at_worst);
  return capacity - std::min(capacity, taken);
}

std::uint64_t Charge::pending_loose_blocks() const {
  const tree::TreeView& view = trees_.view();
  std::uint64_t loose = view.automatic.standing;
  changes_.for_each_above(view.generation, [&](const changes::Delta& delta) { loose += delta.loose.load(std::memory_order_relaxed); });
  return loose;
}

std::uint64_t Charge::inodes() const {
  const tree::TreeView& view = trees_.view();
  auto inodes = static_cast<std::int64_t>(view.inodes);
  changes_.for_each_above(view.generation, [&](const changes::Delta& delta) {
    inodes += delta.inode_change.load(std::memory_order_relaxed);
  });
  return static_cast<std::uint64_t>(std::max<std::int64_t>(inodes, 0));
}

bool Charge::has_room(Counted counted, std::uint64_t blocks, std::uint64_t inodes) const {
  const std::uint64_t capacity = capacity_blocks(), reserve = reserve_blocks();
  if (reserve >= capacity || (inodes && staging_.next_ino() >= format::kInoLimit)) return false;
  return charge(counted) + blocks + inodes <= capacity - reserve;
}

bool Charge::fits_at_best(const Demand& demand) const {
  return has_room(Counted::at_best, demand.new_blocks + demand.new_blocks / 64, demand.new_inodes);
}

bool Charge::may_fit_without_automatic(const Demand& demand) const {
  const tree::AutomaticHoldings& automatic = trees_.view().automatic;
  if (automatic.most == automatic.blocks) return false;  // all of it is known
  return has_room(Counted::without_automatic, demand.new_blocks + demand.new_blocks / 64, demand.new_inodes);
}

bool Charge::fits(const Demand& demand) const {
  std::uint64_t assumed = 0;
  changes_.for_each_above(trees_.view().generation,
                          [&](const changes::Delta& delta) { assumed += delta.assumed.load(std::memory_order_relaxed); });
  return has_room(Counted::at_worst, assumed + demand.new_blocks + demand.new_blocks / 64, demand.new_inodes);
}

}  // namespace varve::space
