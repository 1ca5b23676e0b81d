// A change of size that somebody asked for (checkpoint/reshaping.h). It runs on the thread that makes checkpoints, between what the
// filesystem itself needs. Growing is one checkpoint. Shrinking goes in bounded rounds; stopped at any moment, or after a crash, the
// filesystem has its former size, and nothing is lost.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cleaner/cleaner.h"
#include "jobs/asked_job.h"
#include "jobs/parts.h"

namespace varve::jobs {

struct ResizeRequest {
  std::uint64_t bytes = 0;  // rounded down to whole blocks; 0: as large as the device is
};

struct ResizeState : JobState {  // left: what lives behind the new end
  std::uint64_t device_blocks = 0;   // of the device
  std::uint64_t blocks = 0;          // of the filesystem, now
  std::uint64_t least_blocks = 0;    // to which it could be shrunk now, as far as can be told
  std::uint64_t from = 0, to = 0;    // blocks: what the last request was about
  std::uint64_t segment_blocks = 0;
  std::uint64_t moved = 0;           // blocks of files
  std::vector<std::uint64_t> stuck;  // segments that could not be emptied, the first of them
};

// Thread-safe but for step() and abandon().
class ResizeJob final : public AskedJob<ResizeState> {
 public:
  struct Parts {
    checkpoint::Checkpoints& checkpoints;
    checkpoint::Reshaping& reshaping;
    log::Log& log;
    const segments::SegmentTable& segments;
    Requests& requests;
    Sizes& sizes;
    bool background = false;  // something is discarded meanwhile
  };
  ResizeJob(const Parts& parts, const AskedParts& asked);

  // Errc::invalid, no_space, unsupported: says what is wrong with that size, and which one would do. Errc::busy: one is under way, or
  // something that does not go with it. A size that it has already is no mistake.
  Status start(const ResizeRequest& request);
  ResizeState state() const;

  // A part of it, on the thread that makes checkpoints. It waits where nothing is to be done yet.
  Next step(const Interrupt& interrupt) override;
  // On the last thread: what is under way ends, and the filesystem stays as it was.
  void abandon();

 private:
  Status grow();
  Next begin_shrinking();
  Next shrink_step(const Interrupt& interrupt);
  void retreat();
  cleaner::Round move_some(const Interrupt& interrupt);
  void note_round(const cleaner::Round& round);
  bool gains();
  Next reach_end();
  Next give_up(std::string why);
  Next finish(Phase phase, std::string reason);  // with what a step says then

  const Parts parts_;
  // Of the one that runs; the stepping thread's.
  bool shrinks_ = false, begun_ = false;
  std::uint64_t aim_ = 0;  // segments
  cleaner::Rules rules_;
  unsigned fruitless_ = 0;
  std::uint64_t least_left_ = 0, lowest_limit_ = 0, least_in_use_ = 0, most_clean_ = 0;
};

}  // namespace varve::jobs
