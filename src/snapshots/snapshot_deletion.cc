// Giving back what a deleted snapshot held alone.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/invariant.h"
#include "base/logging.h"
#include "snapshots/snapshot_merge.h"

namespace varve::snapshots {

using format::DeadRun;
using format::Extent;
using format::ItemKind;

namespace {
// Of a run whose blocks may have been moved one by one, so many are looked at together.
constexpr std::uint64_t kStretch = 256;
}  // namespace

Status SnapshotMerge::give_back(DeletionStep step) {
  if (list_.items().empty()) return tables_.ref ? purge(step) : Status();
  while (step.pieces > 0 && step.names > 0) {
    const SnapshotItem* deleted = list_.first_deleting();
    if (!deleted) return {};
    TRY(empty_list(*list_.find(deleted->serial), step));
  }
  return {};
}

Status SnapshotMerge::empty_list(SnapshotItem& deleted, DeletionStep& step) {
  const Serial serial = deleted.serial;
  tree::Cursor cursor(source_, tables_);
  for (TRY(cursor.seek(format::dead_key(serial, 0))); cursor.valid() && format::is_dead_key_of(cursor.key(), serial); TRY(cursor.next())) {
    if (step.pieces == 0 || step.names == 0) return {};
    --step.pieces;
    const format::DeadPiece piece = TRY(source_.told(format::decode_dead(cursor.value())));
    format::DeadPieceBuilder rest(format::kMostDeadPieceBytes);
    for (DeadRun run : piece.runs) {
      const std::uint64_t held = counts_.held_blocks;
      const std::uint64_t done = step.names ? TRY(give_back(piece.death, run, step)) : 0;
      if (deleted.dead < done)
        return contradiction(fmt::format("snapshot {}: its list of dead blocks is longer than it says", serial));
      list_.note_unlisted(deleted, run.birth, done);
      deleted.dead -= done;
      deleted.alone -= std::min(deleted.alone, held - counts_.held_blocks);  // what no older one holds is given back, the rest passed on
      deleted.alone = std::min(deleted.alone, deleted.dead);
      run.address = run.address + done;
      run.length -= done;
      if (run.length) INVARIANT(rest.add(run));
    }
    changed_[serial] = true;
    edits_.erase(cursor.key());
    if (rest.empty()) continue;
    edits_.put(cursor.key(), rest.finish(piece.death));
    return {};
  }
  if (deleted.dead) return contradiction(fmt::format("snapshot {}: its list of dead blocks is shorter than it says", serial));
  edits_.erase(format::snapshot_key(serial));
  changed_.erase(serial);
  list_.erase(serial);
  holder_ = list_.newest();  // it stands elsewhere now
  return {};
}

// How many of them it has dealt with.
Result<std::uint64_t> SnapshotMerge::give_back(Serial death, const DeadRun& run, DeletionStep& step) {
  const SnapshotItem* holder = list_.newest(death);
  if (holder && holder->holds(run.birth)) {
    TRY(add_dead(holder->serial, death, run));
    return run.length;
  }
  std::map<BlockAddr, BlockAddr> moved;
  if (counts_.places) moved = TRY(moved_since(source_, tables_, run.address, run.length, death));
  std::uint64_t done = 0;
  while (done < run.length && step.names > 0) {
    const BlockAddr named = run.address + done;
    const auto next = moved.lower_bound(named);
    const bool is_moved = next != moved.end() && next->first == named;
    std::uint64_t blocks = is_moved ? 1 : (next == moved.end() ? run.length - done : next->first - named);
    if (counts_.places) blocks = TRY(forget_names(is_moved ? next->second : named, std::min(blocks, kStretch), step));
    TRY(release(run, is_moved ? Stands::elsewhere : Stands::as_named, is_moved ? next->second : named, blocks));
    done += blocks;
  }
  return done;
}

Status SnapshotMerge::release(const DeadRun& run, Stands stands, BlockAddr place, std::uint64_t blocks) {
  const bool is_node = run.birth.of_node;
  if (counts_.held_blocks < blocks || (!is_node && counts_.held_data < blocks))
    return contradiction("more blocks are given back than snapshots hold");
  counts_.held_blocks -= blocks;
  if (is_node) return parts_.ledger.release(place);
  counts_.held_data -= blocks;
  Extent extent;
  extent.address = place;
  extent.length = blocks;
  extent.clock = run.clock;
  if (stands == Stands::as_named) extent.estimate = run.estimate;  // where it was moved to it has never been counted
  return parts_.ledger.release(extent);
}

// Of how many it has: all names of a block go at once, but no other block begins when as many as were promised have gone.
Result<std::uint64_t> SnapshotMerge::forget_names(BlockAddr place, std::uint64_t blocks, DeletionStep& step) {
  tree::Cursor cursor(source_, tables_);
  std::optional<BlockAddr> last;
  for (TRY(cursor.seek(format::name_key(place, {}))); cursor.valid() && cursor.key().ino.v < (place + blocks).v; TRY(cursor.next())) {
    if (cursor.key().kind != ItemKind::name) continue;
    const BlockAddr stands{cursor.key().ino.v};
    if (step.names == 0 && stands != last) return stands.v - place.v;
    last = stands;
    const format::Key way = format::place_key(TRY(source_.told(format::decode_name(cursor.value()))), Serial{cursor.key().offset});
    edits_.erase(cursor.key());
    step.names -= std::min<std::uint64_t>(step.names, 1);
    const auto found = TRY(tree::find_item(source_, tables_, way));
    if (!found || TRY(source_.told(format::decode_place(found->value))).place != stands) continue;
    edits_.erase(way);
    counts_.places -= std::min<std::uint64_t>(counts_.places, 1);
  }
  return blocks;
}

// No snapshot is left: what still tells of moved blocks is of no use.
Status SnapshotMerge::purge(DeletionStep step) {
  if (counts_.held_blocks)
    log_error("{} kept for snapshots that are not there; run fsck.varve", counted(counts_.held_blocks, "block is", "blocks are"));
  tree::Cursor cursor(source_, tables_);
  for (TRY(cursor.seek(format::kMinKey)); cursor.valid() && step.names > 0; TRY(cursor.next())) {
    edits_.erase(cursor.key());
    if (cursor.key().kind == ItemKind::place) counts_.places -= std::min<std::uint64_t>(counts_.places, 1);
    --step.names;
  }
  return {};
}

}  // namespace varve::snapshots
