// Does what the filesystem itself needs, in this order: epochs of the log, inodes without names freed, holes for users' writes, room and
// checkpoints.
#pragma once

#include <atomic>

#include "base/clock_watch.h"
#include "base/heap_trim.h"
#include "base/tunable.h"
#include "jobs/job.h"
#include "jobs/parts.h"
#include "operation/background.h"

namespace varve::jobs {

// Small things that are looked at each time.
class Chores {
 public:
  struct Parts {
    Clock& clock;
    space::Space& space;
    const operation::References& references;
    SealTiming& seal_timing;
    Tunable<std::size_t>::View memory_limit_bytes;
  };
  explicit Chores(const Parts& parts);
  void run();

 private:
  void look_at_the_clock();

  const Parts parts_;
  HeapTrim heap_;
  ClockWatch clock_watch_;
};

// Holes for heads that want them.
class HoleSupply {
 public:
  struct Parts {
    space::HoleFeeder& hole_feeder;
    cleaner::Cleaner& cleaner;
    Requests& requests;
  };
  explicit HoleSupply(const Parts& parts) : parts_(parts) {}

  bool is_wanted();  // once: nobody has heard yet that it is. Any thread
  bool feed();       // false: none are wanted, or there are none. By the thread that makes checkpoints, as below
  void fill();       // for the time of a round

 private:
  const Parts parts_;
  std::atomic<bool> asked_{false};
};

class Upkeep final : public Job {
 public:
  struct Parts {
    const device::Faults& faults;
    checkpoint::Checkpoints& checkpoints;
    Requests& requests;
    Chores& chores;
    Reaper& reaper;
    HoleSupply& hole_supply;
    Rounds& rounds;
  };
  explicit Upkeep(const Parts& parts) : Job(Kind::upkeep), parts_(parts) {}

  bool is_due(std::uint64_t) override { return true; }
  bool is_pending() override;
  Next step(const Interrupt&) override;
  // Does what is due of it. `space_wanted`: somebody waits for room. False: there was nothing to do.
  bool work(bool space_wanted);

 private:
  const Parts parts_;
};

// The side of background work that operations see. Any thread.
class Maintenance final : public operation::Background {
 public:
  struct Parts {
    const checkpoint::Seals& seals;
    operation::FileNotes& file_notes;
    Requests& requests;
    SealTiming& seal_timing;
    HoleSupply& hole_supply;
    Rounds& rounds;
    Upkeep& upkeep;
  };
  explicit Maintenance(const Parts& parts) : parts_(parts) {}

  void request_checkpoint(bool space = false) override;
  bool work(bool space_wanted) override;
  void after_operation(io::Reactor* reactor) override;
  // Something is to be looked at: by the thread, or now where there is none.
  void attend();

 private:
  const Parts parts_;
};

}  // namespace varve::jobs
