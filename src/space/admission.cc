#include "space/admission.h"

#include <algorithm>

#include "format/layout.h"
#include "format/snapshot.h"

namespace varve::space {

namespace {

// A recovery begins with a fresh segment for the chain, and a checkpoint without what is left of the metadata head's.
constexpr std::uint64_t kForRecovery = 1;
// A seal may finish the chain's run; the run after that is announced in advance.
constexpr std::uint64_t kForChain = 1;
// A checkpoint for the sake of relief comes so many segments before an operation must wait for it.
constexpr std::uint64_t kInAdvance = 2;

std::uint64_t without(std::uint64_t all, std::uint64_t part) { return all - std::min(all, part); }

// Segments to open for `blocks` more where there is room for some.
std::uint64_t segments_for(std::uint64_t blocks, std::uint64_t room, std::uint64_t segment_blocks) {
  return divide_up(without(blocks, room), segment_blocks);
}

std::uint64_t room_for_users(const SpaceView& view) { return view.head_blocks + view.hole_blocks; }

// The active delta and what is on its way there.
Demand changes(const SpaceView& view) {
  Demand all = view.waiting;
  all.payload += view.changed_blocks;
  return all;
}

constexpr std::uint64_t kPlacesOfMove = 4, kMoveBytes = 64;

// Of the tables of snapshots. What dies is appended to a list; what was moved is entered in two places, and in one for each older name.
Demand of_snapshots(const SpaceView& view, const Demand& changes, const snapshots::DeletionStep& deletion) {
  Demand tables;
  if (!view.has_snapshots) return tables;
  constexpr std::uint64_t kPlaces = 8, kItemBytes = 1200;
  const std::uint64_t most_runs = view.trees.tree_blocks * format::kNodePayloadBytes / 19;  // an extent takes so much, at least
  const std::uint64_t dead = changes.payload + std::min(changes.freed, most_runs) + 2 * changes.places;
  tables.places = kPlaces + kPlacesOfMove * view.moved + 2 * (deletion.pieces + deletion.names);
  tables.item_bytes = dead * format::kDeadRunBytes + view.moved * kMoveBytes + kItemBytes * (2 + 2 * deletion.pieces);
  return tables;
}

Demand with_planned(const SpaceView& view, Demand more) {
  more.evacuated += view.planned_evacuation;
  return more;
}

// Without what is planned to be evacuated, or the cleaner's blocks would leave their groups during a round: it asks admits_moves()
// before it takes any, and for others there is Checkpoint::choose_evacuees().
std::uint64_t counted_on(const SpaceView& view) {
  return std::max(view.users_reserve, kept_segments(view, {}) + kForFreeing + kForCleaner);
}

}  // namespace

std::uint64_t merge_need(const SpaceView& view, const Demand& more) {
  Demand all = changes(view);
  all += more;
  all.scattered += view.untouched_holes;  // those begun are in the active delta
  all += of_snapshots(view, all, {});
  return merge_blocks(view.trees, all);
}

std::uint64_t kept_segments(const SpaceView& view, const Demand& more) {
  // Of a running checkpoint's need, what it has not taken yet is promised. After a crash both are merged as one.
  return divide_up(merge_need(view, more), view.trees.segment_blocks) + view.promised +
         segments_for(view.waiting.payload, room_for_users(view), view.trees.segment_blocks) + kForChain + kForRecovery;
}

std::uint64_t kept_when_idle(const SpaceView& view) {
  return divide_up(merge_blocks(view.trees, {}), view.trees.segment_blocks) + kForChain + kForRecovery;
}

std::uint64_t low_water(const SpaceView& view) {
  return std::max(view.users_reserve, kept_when_idle(view) + kForFreeing + kForCleaner);
}

std::uint64_t low_water_beside_holes(const SpaceView& view) {
  // The need is what it may be at worst. So a quarter of it does for what is changed during a checkpoint; keeping more clean costs rounds.
  const std::uint64_t need = divide_up(view.usual_need + view.usual_need / 4, view.trees.segment_blocks);
  return kept_when_idle(view) + kForFreeing + kForCleaner + kInAdvance + need;
}

bool relief_is_due(const SpaceView& view) {
  const std::uint64_t kept = kept_segments(view, {});
  return kept > kept_when_idle(view) + 2 && view.clean <= kept + kForFreeing + kForCleaner + kInAdvance;
}

bool admits(const SpaceView& view, bool frees) {
  const std::uint64_t kept = kept_segments(view, with_planned(view, {})) + kForCleaner;
  if (frees) return view.clean >= kept;
  // What goes into holes takes nothing from the users' share of clean segments.
  const std::uint64_t waiting = view.waiting.payload, in_holes = view.hole_blocks;
  const std::uint64_t reserve = without(view.users_reserve, view.lent);
  const std::uint64_t for_users = in_holes && waiting <= in_holes ? 0 : reserve + 1 + (waiting - in_holes) / view.trees.segment_blocks;
  return view.clean >= std::max(for_users, kept + kForFreeing);
}

bool admits_into_holes(const SpaceView& view, const Demand& more) {
  return view.clean >= kept_segments(view, with_planned(view, more)) + kForCleaner + kForFreeing;
}

bool admits_moves(const SpaceView& view, const Demand& moves, bool to_group_0, std::uint64_t head_blocks) {
  Demand more = with_planned(view, moves);
  if (view.has_snapshots) {
    more.places += kPlacesOfMove * moves.payload;
    more.item_bytes += kMoveBytes * moves.payload;
  }
  const std::uint64_t kept = kept_segments(view, more);
  if (moves.scattered) return view.clean >= kept;
  const std::uint64_t segment_blocks = view.trees.segment_blocks;
  std::uint64_t opened = segments_for(moves.payload, head_blocks, segment_blocks);
  if (to_group_0) {
    // What users have waiting may all go to group 0: the room at its head is not there twice. Holes in the pool are theirs.
    const std::uint64_t waiting = view.waiting.payload, room = room_for_users(view);
    opened = std::max(opened, segments_for(waiting + moves.payload, room, segment_blocks)) - segments_for(waiting, room, segment_blocks);
  }
  return view.clean >= kept + opened;
}

// All payload has been sealed, and holes that nothing has been written to belong to the next checkpoint.
std::uint64_t merge_need_at_freeze(const SpaceView& view, std::uint64_t nodes, const snapshots::DeletionStep& deletion) {
  Demand all = changes(view);
  all.evacuated += nodes;
  all += of_snapshots(view, all, deletion);
  return merge_blocks(view.trees, all);
}

bool admits_evacuation(const SpaceView& view, std::uint64_t nodes) {
  return view.clean >= divide_up(merge_need_at_freeze(view, nodes), view.trees.segment_blocks);
}

bool admits_deletion(const SpaceView& view, const snapshots::DeletionStep& step) {
  return view.clean >= divide_up(merge_need_at_freeze(view, 0, step), view.trees.segment_blocks) + kForRecovery;
}

std::uint64_t spare_segments(const SpaceView& view) { return without(view.clean, counted_on(view)); }

bool has_spare_segments(const SpaceView& view, std::uint64_t count) { return view.clean >= counted_on(view) + count; }

// The cleaner needs room for what it moves before it gets any back, and its checkpoint for the nodes that it dirties.
std::uint64_t users_reserve(std::uint64_t segments) { return segments / 64 + segments / 48 + 6; }

unsigned most_open_groups(std::uint64_t segments, unsigned streams) {
  constexpr unsigned kAlways = 4;  // the chain, tree nodes, superblocks, group 0
  const auto by_space = static_cast<unsigned>(std::clamp<std::uint64_t>(segments / 50, 1, format::kMaxGroups - 1));
  return streams ? std::min(by_space, streams - std::min(streams, kAlways)) : by_space;
}

std::uint64_t reserved_segments(std::uint64_t segments) {
  const std::uint64_t open_heads = 4 + (most_open_groups(segments) + 1) / 2;  // those of groups are half full, on average
  const std::uint64_t slack = std::max<std::uint64_t>(3, segments / 28);      // what makes cleaning worth its reads
  return users_reserve(segments) + open_heads + slack;
}

}  // namespace varve::space
