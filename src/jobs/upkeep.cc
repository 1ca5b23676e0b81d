#include "jobs/upkeep.h"

#include <cstdlib>

#include "base/duration.h"
#include "base/logging.h"
#include "checkpoint/checkpoints.h"
#include "checkpoint/seals.h"
#include "cleaner/cleaner.h"
#include "device/faults.h"
#include "jobs/reaper.h"
#include "jobs/requests.h"
#include "jobs/rounds.h"
#include "jobs/seal_timing.h"
#include "operation/file_notes.h"
#include "operation/references.h"
#include "space/hole_feeder.h"
#include "space/space.h"

namespace varve::jobs {

// --- chores ---------------------------------------------------------------------------------------------------------------

Chores::Chores(const Parts& parts) : parts_(parts), heap_(parts.memory_limit_bytes), clock_watch_(parts.clock) {}

void Chores::look_at_the_clock() {
  const std::int64_t jump = clock_watch_.jump();
  if (jump == 0) return;
  log_warn("the system's clock was set {} by {}: ages of snapshots go by the time that has passed, and new times of files by the clock",
           jump > 0 ? "forward" : "back", rough_duration_text(static_cast<std::uint64_t>(std::abs(jump))));
}

void Chores::run() {
  look_at_the_clock();
  parts_.space.note_memory_taken(parts_.references.bytes());  // as many names as the kernel knows
  parts_.seal_timing.look();  // the bound of memory has become smaller, and no operation comes
  heap_.bound(parts_.memory_limit_bytes);
  heap_.look();  // checkpoints leave much behind
}

// --- holes ----------------------------------------------------------------------------------------------------------------

bool HoleSupply::is_wanted() { return parts_.hole_feeder.is_hungry() && !asked_.exchange(true); }

bool HoleSupply::feed() {
  asked_ = false;
  parts_.cleaner.reconsider();
  if (!parts_.hole_feeder.is_hungry() || !parts_.hole_feeder.feed()) return false;
  parts_.requests.wake_waiting();  // holes let operations in that no clean segment would
  return true;
}

void HoleSupply::fill() {
  if (parts_.hole_feeder.spares_cleaning()) (void)parts_.hole_feeder.feed();
}

// --- all of it ------------------------------------------------------------------------------------------------------------

bool Upkeep::is_pending() { return parts_.reaper.anything_waits() || parts_.rounds.is_pending(); }

Job::Next Upkeep::step(const Interrupt&) { return work(false) && parts_.rounds.is_low() ? Next::at_once : Next::later; }

bool Upkeep::work(bool space_wanted) {
  if (!may_begin(kind(), {.read_only = parts_.faults.read_only(), .host_full = parts_.faults.host_full()})) return false;
  parts_.chores.run();
  bool worked = false;
  if (parts_.checkpoints.epoch_due()) {
    (void)parts_.checkpoints.write_epoch();
    worked = true;
  }
  worked |= parts_.reaper.reap_waiting();
  worked |= parts_.hole_supply.feed();
  const bool waited_for = parts_.requests.take_room() || space_wanted;
  const bool low = waited_for || parts_.rounds.is_low();
  if (!parts_.rounds.is_due(low)) return worked;
  parts_.hole_supply.fill();
  parts_.rounds.run(low, waited_for);
  parts_.hole_supply.feed();
  return true;
}

// --- what operations see --------------------------------------------------------------------------------------------------

void Maintenance::request_checkpoint(bool space) { parts_.requests.ask_for_checkpoint(space); }

bool Maintenance::work(bool space_wanted) { return parts_.upkeep.work(space_wanted); }

void Maintenance::attend() {
  if (parts_.requests.has_threads()) parts_.requests.kick();
  else work(false);
}

void Maintenance::after_operation(io::Reactor* reactor) {
  const bool has_threads = parts_.requests.has_threads();
  parts_.seal_timing.look(reactor);
  if (parts_.hole_supply.is_wanted()) has_threads ? parts_.requests.kick() : (void)parts_.hole_supply.feed();
  const bool waits = parts_.seals.unawaited_since_ns() != 0;
  if (waits) parts_.file_notes.note_use();
  if (!parts_.requests.is_armed() && (waits || parts_.file_notes.any())) parts_.requests.arm();
  if (!has_threads && (parts_.rounds.wants_checkpoint() || parts_.rounds.is_low())) work(false);
}

}  // namespace varve::jobs
