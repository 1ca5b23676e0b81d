#include "jobs/scheduler.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/invariant.h"
#include "changes/changes.h"
#include "device/faults.h"
#include "jobs/requests.h"
#include "log/log.h"
#include "segments/log_clock.h"
#include "snapshots/snapshots.h"

namespace varve::jobs {

Scheduler::Scheduler(const Parts& parts, std::vector<Job*> jobs)
    : parts_(parts), jobs_(std::move(jobs)), pauses_(parts.clock.monotonic_ns()) {
  INVARIANT(jobs_.size() == kKinds);
  for (std::size_t i = 0; i < jobs_.size(); ++i) INVARIANT(jobs_[i]->kind() == static_cast<Kind>(i));
}

void Scheduler::start() {
  parts_.requests.thread().start("varve-jobs", [this] { run(); });
}

void Scheduler::stop() { parts_.requests.thread().stop(); }

void Scheduler::finish(Job& job) {
  while (job.is_pending()) step(job);
}

void Scheduler::step(Job& job) { (void)job.step(interrupt(job.kind())); }

Job::Interrupt Scheduler::interrupt(Kind kind) {
  return [this, kind, moved = parts_.requests.moved(), written = parts_.log_clock.now()] {
    Events events = parts_.requests.events(moved);
    events.woken = parts_.requests.thread().is_wanted();
    events.written = parts_.log_clock.now() != written;
    return gives_way(kind, events);
  };
}

// --- the thread -----------------------------------------------------------------------------------------------------------

std::uint64_t Scheduler::operations() const { return parts_.log.chunks() + parts_.changes.count_records(); }

bool Scheduler::anything_asked() { return job(Kind::cleaning).is_pending() || job(Kind::resizing).is_pending(); }

bool Scheduler::anything_pending() {
  return std::ranges::any_of(jobs_, [](Job* job) { return stage_of(job->kind()) != Stage::asked && job->is_pending(); });
}

Situation Scheduler::situation() {
  return {.read_only = parts_.faults.read_only(), .host_full = parts_.faults.host_full(),
          .gives_back = parts_.snapshots.deletion_is_left(), .is_cleaning = job(Kind::cleaning).is_pending(),
          .idle_ns = pauses_.idle_ns(parts_.clock.monotonic_ns())};
}

std::vector<Job*> Scheduler::due(Stage stage) {
  const Situation now = situation();
  const std::uint64_t now_ns = parts_.clock.monotonic_ns();
  std::vector<Job*> jobs;
  for (Job* job : jobs_)
    if (stage_of(job->kind()) == stage && may_begin(job->kind(), now) && job->is_due(now_ns)) jobs.push_back(job);
  return jobs;
}

// False: the thread is to stop.
bool Scheduler::take(Job& job) {
  Job::Next next = Job::Next::later;
  do {
    next = job.step(interrupt(job.kind()));
    if (parts_.requests.thread().is_stopping()) return false;
  } while (next == Job::Next::at_once);
  waits_ = next == Job::Next::waits;
  if (is_unnoticed(job.kind())) pauses_.forget(operations());
  return true;
}

void Scheduler::run() {
  for (;;) {
    const bool gives_back = parts_.snapshots.deletion_is_left() && !parts_.faults.read_only();
    const auto pause = pauses_.next(anything_asked(), parts_.requests.is_armed() || gives_back, parts_.faults.host_full());
    if (!parts_.requests.thread().sleep(pause)) return;
    turn();
  }
}

// Then a rest of the same length if operations came meanwhile, which need the device.
void Scheduler::asked_turn() {
  const std::uint64_t began = parts_.clock.monotonic_ns(), written = parts_.log_clock.now();
  const std::vector<Job*> jobs = due(Stage::asked);
  for (Job* job : jobs) take(*job);
  if (jobs.empty()) return;
  const Pauses::Time took(parts_.clock.monotonic_ns() - began);
  pauses_.rest(waits_ ? Pauses::kShortest : parts_.log_clock.now() == written ? Pauses::Time() : took);
}

void Scheduler::turn() {
  asked_turn();
  parts_.faults.settle_alarm();
  if (parts_.faults.read_only()) return parts_.requests.disarm();
  if (parts_.faults.host_full()) return pauses_.lengthen();
  for (const Stage stage : {Stage::upkeep, Stage::idle}) {
    if (stage == Stage::idle) pauses_.look(operations(), parts_.clock.monotonic_ns());
    for (Job* job : due(stage))
      if (!take(*job)) return;
  }
  if (anything_pending()) return;
  parts_.requests.disarm();
  if (anything_pending()) parts_.requests.arm();  // something came between; the seal timer may not know
}

}  // namespace varve::jobs
