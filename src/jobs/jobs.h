// All background work of a mounted filesystem: its parts, put together.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/tunable.h"
#include "jobs/clean_job.h"
#include "jobs/idle_jobs.h"
#include "jobs/reaper.h"
#include "jobs/requests.h"
#include "jobs/resize_job.h"
#include "jobs/rounds.h"
#include "jobs/scheduler.h"
#include "jobs/seal_timer.h"
#include "jobs/seal_timing.h"
#include "jobs/sizes.h"
#include "jobs/tidier.h"
#include "jobs/upkeep.h"

namespace varve::store {
class Store;
}

namespace varve::jobs {

class Jobs {
 public:
  struct Settings {
    bool cleans = true;
    std::uint64_t checkpoint_records = 0, seal_delay_ns = 0;
    Tunable<std::size_t>::View memory_limit_bytes;
  };
  Jobs(store::Store& store, cleaner::Cleaner& cleaner, operation::Operations& operations, const Settings& settings);

  void start();
  void stop();
  // Somebody has asked for it: the thread begins; where there is none it is done when this returns.
  void attend(Job& job);

  Requests& requests() { return requests_; }
  SealTiming& seal_timing() { return seal_timing_; }
  Reaper& reaper() { return reaper_; }
  Maintenance& maintenance() { return maintenance_; }
  CleanJob& clean_job() { return clean_job_; }
  ResizeJob& resize_job() { return resize_job_; }
  Tidier& tidier() { return tidier_; }
  Scheduler& scheduler() { return scheduler_; }

 private:
  Requests requests_;
  SealTiming seal_timing_;
  SealTimer seal_timer_;
  Reaper reaper_;
  Shortage shortage_;
  CheckpointTiming checkpoint_timing_;
  Rounds rounds_;
  HoleSupply hole_supply_;
  Chores chores_;
  Upkeep upkeep_;
  Maintenance maintenance_;
  std::atomic<const BusyWords*> asked_{nullptr};
  CleanJob clean_job_;
  Sizes sizes_;
  ResizeJob resize_job_;
  Tidier tidier_;
  IdleCheckpoint idle_checkpoint_;
  IdleCleaning idle_cleaning_;
  Scheduler scheduler_;
};

}  // namespace varve::jobs
