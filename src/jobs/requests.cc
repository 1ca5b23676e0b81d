#include "jobs/requests.h"

#include "base/wait_list.h"
#include "checkpoint/checkpoints.h"
#include "device/io_context.h"
#include "segments/counters.h"
#include "snapshots/snapshots.h"

namespace varve::jobs {

bool Requests::has_threads() const { return parts_.io.background(); }

void Requests::kick() {
  if (has_threads()) parts_.io.wake_service();
  thread_.wake();
}

void Requests::ask_for_checkpoint(bool space) {
  (space ? space_wanted_ : checkpoint_wanted_) = true;
  kick();
}

void Requests::wake_waiting() { parts_.waiters.wake(); }

bool Requests::room_is_waited_for() const { return space_noted_ || (space_wanted_ && parts_.waiters.any()); }

bool Requests::is_waited_for() const {
  return room_is_waited_for() || checkpoint_wanted_ || parts_.checkpoints.epoch_due() || parts_.snapshots.anything_asked();
}

std::uint64_t Requests::moved() const { return parts_.counters.cleaned_blocks; }

Events Requests::events(std::uint64_t moved_before) const {
  return {.room = room_is_waited_for(), .checkpoint = checkpoint_wanted_, .epoch = parts_.checkpoints.epoch_due(),
          .snapshot = parts_.snapshots.anything_asked(), .moved = moved() != moved_before};
}

bool Requests::take_room() {
  const bool operations_wait = space_wanted_.exchange(false) && parts_.waiters.any(), noted = space_noted_.exchange(false);
  if (operations_wait) checkpoint_wanted_ = true;
  return operations_wait || noted;
}

}  // namespace varve::jobs
