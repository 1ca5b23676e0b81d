#include "jobs/rounds.h"

#include <algorithm>
#include <utility>

#include "changes/changes.h"
#include "changes/staging.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/protection.h"
#include "cleaner/cleaner.h"
#include "jobs/requests.h"
#include "segments/log_clock.h"
#include "segments/segment_table.h"
#include "snapshots/snapshots.h"
#include "space/hole_feeder.h"
#include "space/space.h"

namespace varve::jobs {

using Need = checkpoint::Protection::Need;

// --- room -----------------------------------------------------------------------------------------------------------------

Shortage::Shortage(const Parts& parts) : parts_(parts), futile_until_(parts.log_clock.now() + 1) {}

std::uint64_t Shortage::clean() const { return parts_.segments.clean(); }
std::uint64_t Shortage::reclaimable() const { return parts_.segments.reclaimable(); }
std::uint64_t Shortage::written() const { return parts_.log_clock.now(); }

// While users write into holes instead, nothing need be cleaned ahead of them: each round has a checkpoint, which writes most nodes again.
std::uint64_t Shortage::low_mark() const {
  const std::uint64_t ahead = parts_.space.low_water() + parts_.cleaner.ahead();
  return parts_.hole_feeder.spares_cleaning() ? std::min(ahead, parts_.space.low_water_beside_holes()) : ahead;
}

bool Shortage::is_low() const { return parts_.cleans && clean() <= low_mark(); }

bool Shortage::is_due() const { return is_low() && written() >= futile_until_; }

bool Shortage::will_be_due() const {
  constexpr std::uint64_t kForNodes = 2;  // segments that a checkpoint takes, as a rule
  return parts_.cleans && written() >= futile_until_ && clean() + reclaimable() <= low_mark() + kForNodes;
}

bool Shortage::lags() const { return clean() + reclaimable() <= parts_.space.low_water() + parts_.cleaner.ahead() / 2; }

bool Shortage::cleaning_helps() const {
  if (parts_.snapshots.deletion_is_left()) {  // that gives back space without moving anything
    // Yet snapshots leave scattered blocks, and automatic ones always leave some. If segments are short, both take turns.
    const bool is_short = clean() <= parts_.space.low_water() + parts_.cleaner.ahead() / 2;
    if (!is_short || parts_.checkpoints.settled().v % 2) return false;
  }
  // A checkpoint releases some by itself, which comes first: cleaning moves blocks only when that is not enough.
  return parts_.cleans && clean() + reclaimable() <= parts_.space.low_water() + parts_.cleaner.ahead();
}

void Shortage::note_futile() { futile_until_ = written() + 4 * parts_.segments.geometry().blocks; }

// --- checkpoints ----------------------------------------------------------------------------------------------------------

bool CheckpointTiming::is_due() const {
  if (parts_.snapshots.anything_asked() || parts_.protection.is_due()) return true;
  if (parts_.changes.count_records() >= parts_.most_records) return true;
  if (parts_.space.relief_is_due()) return true;
  const std::uint64_t free_blocks =
      std::max((parts_.segments.clean() + 1) * parts_.segments.geometry().blocks, parts_.hole_feeder.room());
  return parts_.checkpoints.log_blocks_since() > std::max<std::uint64_t>(free_blocks / 2, 2048);
}

bool CheckpointTiming::deletion_is_left() const { return parts_.snapshots.deletion_is_left(); }

bool CheckpointTiming::is_for_snapshots() const {
  return deletion_is_left() || parts_.snapshots.anything_asked() || parts_.protection.is_due();
}

// --- one after the other --------------------------------------------------------------------------------------------------

bool Rounds::is_low() const { return parts_.shortage.is_due(); }
bool Rounds::wants_checkpoint() const { return parts_.requests.checkpoint_is_wanted() || parts_.timing.is_due(); }
bool Rounds::is_due(bool low) const { return low || wants_checkpoint() || parts_.timing.deletion_is_left(); }
bool Rounds::is_pending() { return parts_.protection.is_pending(); }

// False: there was nothing to move, so no checkpoint is needed for it.
bool Rounds::clean(bool waited_for, checkpoint::CheckpointRequest& request) {
  cleaner::Round round = parts_.cleaner.run_round(waited_for);
  request.evacuate = std::move(round.emptied);
  return round.moved || !request.evacuate.empty();
}

void Rounds::run(bool low, bool waited_for) {
  Shortage& shortage = parts_.shortage;
  if (low && shortage.lags()) parts_.protection.ask_for_room(Need::half);  // automatic snapshots make it before anybody waits
  const bool asked = parts_.requests.take_checkpoint();
  const bool wanted = asked || parts_.timing.is_due() || parts_.timing.deletion_is_left();
  // Else a round would follow soon, and with it another checkpoint, which writes most nodes again.
  const bool cleans_first = low || (wanted && !asked && !parts_.timing.is_for_snapshots() && shortage.will_be_due());
  checkpoint::CheckpointRequest request;
  const std::uint64_t clean_before = shortage.clean(), written_before = shortage.written();
  bool moved = cleans_first && shortage.cleaning_helps() && clean(waited_for, request);
  // For want of space, but nothing to release (H33): it would only spread the nodes over more segments.
  const bool has_work = wanted && (parts_.staging.dirty() || parts_.timing.is_for_snapshots());
  const bool pointless = low && !moved && shortage.reclaimable() == 0 && !has_work;
  if (pointless) parts_.checkpoints.note_pointless_round();
  else (void)parts_.cleaner.settle(request);
  // The delta may have kept the room that moving needs; now it is merged.
  if (low && !pointless && !moved && shortage.cleaning_helps()) {
    moved = clean(waited_for, request);
    if (moved) (void)parts_.cleaner.settle(request);
  }
  if (parts_.cleaner.pinned_segments()) parts_.cleaner.count_pinned();
  if (moved) parts_.cleaner.note_meanwhile(shortage.written() - written_before);
  if (!low || shortage.clean() > clean_before) return;
  const bool makes_room = shortage.is_low() && parts_.protection.ask_for_room(Need::half);
  if (!makes_room) shortage.note_futile();
}

}  // namespace varve::jobs
