#include "jobs/idle_jobs.h"

#include "changes/staging.h"
#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "cleaner/patience.h"
#include "segments/log_clock.h"

namespace varve::jobs {

bool IdleCheckpoint::is_pending() { return staging_.dirty(); }

Job::Next IdleCheckpoint::step(const Interrupt&) {
  if (staging_.dirty()) (void)checkpoints_.make({});
  return Next::later;
}

IdleCleaning::IdleCleaning(const Parts& parts) : Job(Kind::ordering), parts_(parts), ordered_at_(parts.log_clock.now()) {}

bool IdleCleaning::is_due(std::uint64_t) { return !parts_.staging.dirty() && is_pending(); }

bool IdleCleaning::is_pending() { return parts_.cleans && parts_.log_clock.now() != ordered_at_ && parts_.cleaner.works_when_idle(); }

Job::Next IdleCleaning::step(const Interrupt& interrupt) {
  const std::uint64_t clock = parts_.log_clock.now();
  cleaner::Patience patience;
  while (!interrupt()) {
    const cleaner::Round round = parts_.cleaner.run_idle_round(interrupt);
    if (!round.moved && round.emptied.empty()) break;
    if (!parts_.checkpoints.make({.evacuate = round.emptied}).ok()) break;
    if (!patience.lasts(round.left)) break;
  }
  if (!interrupt()) ordered_at_ = clock;
  return Next::later;
}

}  // namespace varve::jobs
