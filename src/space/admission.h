// Room now: whether what is to be added finds the clean segments to be sealed and merged in (docs/design.md, Space). Pure functions
// over a view of what there is; space.h makes that view.
#pragma once

#include <cstdint>

#include "snapshots/deletion_step.h"
#include "space/demand.h"
#include "space/headroom.h"

namespace varve::space {

struct SpaceView {
  TreeSizes trees;                 // what a running checkpoint writes included
  std::uint64_t clean = 0;         // segments
  std::uint64_t promised = 0;      // segments that a running checkpoint may still take
  std::uint64_t users_reserve = 0; // segments that users leave clean, at least
  std::uint64_t lent = 0;          // segments that users may take before they are free
  Demand waiting;                  // let in, and in no checkpoint's account yet; payload: in no chunk yet
  std::uint64_t changed_blocks = 0;      // of the active delta, which have their places already
  std::uint64_t planned_evacuation = 0;  // nodes
  std::uint64_t head_blocks = 0;   // room at the head of group 0
  std::uint64_t hole_blocks = 0;   // room in holes that are open
  std::uint64_t untouched_holes = 0;     // segments of those that nothing has been written to
  bool has_snapshots = false;            // what is let go may have to be kept, and noted
  std::uint64_t moved = 0;               // blocks, by a cleaner, since the last freeze
  std::uint64_t usual_need = 0;          // blocks that the last checkpoint might have written
};

// Segments that each leaves to the next: users to deletes, deletes to the cleaner, which needs some to move a victim, and for the
// checkpoint after, when all that deletes could take has been taken.
constexpr std::uint64_t kForFreeing = 2, kForCleaner = 3;

// Blocks that a checkpoint writes at most which merges all that waits, and `more`.
std::uint64_t merge_need(const SpaceView& view, const Demand& more);
// Segments that must be clean for a seal and a checkpoint, should there be so much more.
std::uint64_t kept_segments(const SpaceView& view, const Demand& more);
std::uint64_t kept_when_idle(const SpaceView& view);
// With fewer clean segments than this, users wait.
std::uint64_t low_water(const SpaceView& view);
// The same while what they write goes into holes. That takes no clean segments, so more need not be there than the cleaner wants, a
// checkpoint, and what is changed meanwhile for the next one: with less, users wait for each checkpoint.
std::uint64_t low_water_beside_holes(const SpaceView& view);
// Would a checkpoint let operations in that soon must wait for one?
bool relief_is_due(const SpaceView& view);

// May an operation that frees something, or one that does not, go on? What it asks for is in view.waiting already.
bool admits(const SpaceView& view, bool frees);
// May users write into holes, if so much were added?
bool admits_into_holes(const SpaceView& view, const Demand& more);
// May the cleaner move so much to a head with `head_blocks` left? To holes, if `moves.scattered`.
bool admits_moves(const SpaceView& view, const Demand& moves, bool to_group_0, std::uint64_t head_blocks);
// The same for a checkpoint that freezes now and evacuates so many nodes; is there room for that?
std::uint64_t merge_need_at_freeze(const SpaceView& view, std::uint64_t nodes, const snapshots::DeletionStep& deletion = {});
bool admits_evacuation(const SpaceView& view, std::uint64_t nodes);
bool admits_deletion(const SpaceView& view, const snapshots::DeletionStep& step);
// Clean segments beyond those that users, deletes, the cleaner, a running checkpoint and the next one count on.
std::uint64_t spare_segments(const SpaceView& view);
bool has_spare_segments(const SpaceView& view, std::uint64_t count);  // and not fewer than those others count on

// Of a filesystem with so many segments: what users leave clean, at least.
std::uint64_t users_reserve(std::uint64_t segments);
// How many groups beside group 0 may have heads at one time (what is open cannot be filled otherwise, nor cleaned).
// Where the device keeps no more than so many `streams` cheap (0: not known), the chain, tree nodes and group 0 come first.
unsigned most_open_groups(std::uint64_t segments, unsigned streams = 0);
// What is nobody's to fill.
std::uint64_t reserved_segments(std::uint64_t segments);

}  // namespace varve::space
