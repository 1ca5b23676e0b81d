// Puts files together again by itself, where seeks are dear: those that were written over here and there, or were read in a row and
// found in many pieces. It does so when for some seconds no operation has changed anything or waited for the device, on mains power.
//
// The budget: moving takes the device no longer than the pieces have cost already when they were read. Beside that it writes no more than
// has been written over since the mount. A piece of a file is moved only if reading it would take twice as long as it need. Tidying
// stops where its writes would make the cleaner begin, and each file is looked at once until it is written over or read in pieces again:
// so it comes to rest.
#pragma once

#include <atomic>
#include <cstdint>

#include "jobs/job.h"
#include "jobs/parts.h"

namespace varve::jobs {

struct ReadCost;

class Tidier final : public Job {
 public:
  static constexpr std::uint64_t kIdleNs = 10'000'000'000;  // since the last use

  struct Parts {
    Clock& clock;
    Random& random;
    io::BlockDevice& device;
    const device::Faults& faults;
    checkpoint::Checkpoints& checkpoints;
    cleaner::Cleaner& cleaner;
    operation::FileNotes& notes;
  };
  explicit Tidier(const Parts& parts) : Job(Kind::tidying), parts_(parts) {}

  std::uint64_t moved() const { return moved_.load(std::memory_order_relaxed); }  // blocks. Any thread

  // The filesystem has not been used for a while.
  bool is_due(std::uint64_t now_ns) override;
  bool is_pending() override;
  // Until all files have been looked at, the budget is spent, or there is something else to do: it is used, or disturbed.
  Next step(const Interrupt& disturbed) override;

 private:
  class Files;

  void tidy(Files& files, const ReadCost& cost, const Interrupt& stop);

  const Parts parts_;
  std::atomic<std::uint64_t> moved_{0};
  std::uint64_t seen_uses_ = 0, since_ns_ = 0;  // since when there have been no more
};

}  // namespace varve::jobs
