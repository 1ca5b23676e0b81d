// Jobs that run while nobody uses the filesystem: its last changes get into the trees, and segments are put in order.
#pragma once

#include "jobs/job.h"
#include "jobs/parts.h"

namespace varve::jobs {

class IdleCheckpoint final : public Job {
 public:
  IdleCheckpoint(const changes::Staging& staging, checkpoint::Checkpoints& checkpoints)
      : Job(Kind::settling), staging_(staging), checkpoints_(checkpoints) {}
  bool is_due(std::uint64_t) override { return is_pending(); }
  bool is_pending() override;
  Next step(const Interrupt&) override;

 private:
  const changes::Staging& staging_;
  checkpoint::Checkpoints& checkpoints_;
};

// Strategies may use idle time; when nothing is left to do, or nothing is gained any more, not again before something has been written:
// an idle filesystem comes to rest.
class IdleCleaning final : public Job {
 public:
  struct Parts {
    const changes::Staging& staging;
    const segments::LogClock& log_clock;
    checkpoint::Checkpoints& checkpoints;
    cleaner::Cleaner& cleaner;
    bool cleans = false;
  };
  explicit IdleCleaning(const Parts& parts);
  bool is_due(std::uint64_t) override;
  bool is_pending() override;
  Next step(const Interrupt& interrupt) override;

 private:
  const Parts parts_;
  std::uint64_t ordered_at_;  // log clock when there was nothing left to do
};

}  // namespace varve::jobs
