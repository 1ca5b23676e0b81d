// A cleaning that somebody asked for: rounds of one strategy until it has freed, or moved, what was asked, or has nothing
// left to do. It runs on the thread that makes checkpoints, between what the filesystem itself needs; stopping it at any
// moment, or a crash, loses nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cleaner/cleaner.h"
#include "cleaner/patience.h"
#include "jobs/asked_job.h"
#include "jobs/parts.h"

namespace varve::jobs {

class FileWalk;

struct CleanRequest {
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};
  std::string strategy, policy, placement;    // as mount options; empty: those of the mount
  std::uint64_t free_blocks = kNoLimit;       // enough when so many more blocks stand in clean segments
  std::uint64_t move_blocks = kNoLimit;       // enough when so many have been moved
  std::uint64_t buffer_blocks = 0;            // in memory at one time; 0: as usual
  std::vector<Ino> roots;                     // files, or directories with all below; empty: everything
  bool dry_run = false;                       // only say what would be done: nothing is written
};

struct CleanState : JobState {  // left: Round::left
  CleanRequest request;
  std::uint64_t read = 0, written = 0;  // blocks of files
  std::uint64_t nodes = 0;              // blocks of metadata written meanwhile, users' share included
  std::uint64_t emptied = 0;            // segments
  std::uint64_t segment_blocks = 0, segments = 0;
  struct Layout {
    std::uint64_t clean = 0;  // segments
    std::uint64_t used = 0;
    std::uint64_t garbage = 0;  // blocks in used segments
    std::uint64_t end = 0;      // one past the highest segment in use; those that are open are full only later
    std::uint64_t open = 0;
  };
  Layout before, now;
  std::uint64_t freed_blocks() const { return (now.clean - std::min(now.clean, before.clean)) * segment_blocks; }
  cleaner::FileCounts files;  // of strategies that go by files
  cleaner::Forecast forecast;  // of a dry run
};

class CleanJob final : public AskedJob<CleanState> {
 public:
  struct Parts {
    checkpoint::Checkpoints& checkpoints;
    const segments::Counters& counters;
    const segments::SegmentTable& segments;
    operation::Operations& operations;
    const Requests& requests;
  };
  CleanJob(const Parts& parts, const AskedParts& asked);
  ~CleanJob() override;

  // Errc::invalid: says what is wrong with the request; busy: one is running, or the filesystem is being unmounted.
  Status start(const CleanRequest& request);
  CleanState state() const { return copied_state(); }

  // One round and the checkpoint after it.
  Next step(const Interrupt& interrupt) override;

 private:
  void begin_files(const CleanRequest& request);
  Status begin_moving();
  Next make_forecast();
  cleaner::Task task(const CleanState& so_far) const;
  void note_round(const cleaner::Round& round);
  Next finish(Phase phase, std::string reason);  // with what a step says then
  CleanState::Layout layout() const;

  const Parts parts_;
  // Of the one that runs; the stepping thread's.
  cleaner::Rules rules_;
  std::unique_ptr<FileWalk> files_;
  bool begun_ = false;
  std::uint64_t nodes_at_first_ = 0;
  cleaner::Patience patience_;
};

}  // namespace varve::jobs
