// The thread of background work: whose turn it is, and how long it sleeps. Rules: precedence.h, pauses.h.
#pragma once

#include <cstdint>
#include <vector>

#include "jobs/job.h"
#include "jobs/parts.h"
#include "jobs/pauses.h"

namespace varve::jobs {

class Scheduler {
 public:
  struct Parts {
    Clock& clock;
    device::Faults& faults;
    log::Log& log;
    const changes::Changes& changes;
    const segments::LogClock& log_clock;
    const snapshots::Snapshots& snapshots;
    Requests& requests;
  };
  // `jobs`: one of each kind, in the order of kinds.
  Scheduler(const Parts& parts, std::vector<Job*> jobs);

  void start();
  void stop();  // the engine's I/O goes on

  // Does all of a job that somebody has asked for, on the calling thread; for mounts without threads.
  void finish(Job& job);
  // One step of it.
  void step(Job& job);
  // Tells a step of that kind, which begins now, when it is to give way.
  Job::Interrupt interrupt(Kind kind);

 private:
  void run();
  void turn();
  void asked_turn();
  std::vector<Job*> due(Stage stage);
  bool take(Job& job);
  Job& job(Kind kind) { return *jobs_[static_cast<std::size_t>(kind)]; }
  bool anything_asked();
  bool anything_pending();
  Situation situation();
  std::uint64_t operations() const;

  const Parts parts_;
  const std::vector<Job*> jobs_;
  Pauses pauses_;
  bool waits_ = false;  // the last step of a job that was asked for
};

}  // namespace varve::jobs
