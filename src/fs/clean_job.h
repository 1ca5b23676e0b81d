// A cleaning that somebody asked for: rounds of one strategy until it has freed, or moved, what was asked, or has nothing
// left to do. It runs on the thread that makes checkpoints, between what the filesystem itself needs; stopping it at any
// moment, or a crash, loses nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cleaner/cleaner.h"
#include "cleaner/patience.h"

namespace varve::fs {

class Engine;
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

struct CleanState {
  enum class Phase : std::uint8_t { never, running, stopped, finished, failed };
  Phase phase = Phase::never;
  std::string reason;  // why it ended
  std::string doing;
  CleanRequest request;
  std::uint64_t rounds = 0;
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
  std::uint64_t left_at_first = 0, left = 0;  // Round::left
  double seconds = 0;
  cleaner::Forecast forecast;  // of a dry run
};
const char* name_of(CleanState::Phase phase);

// Thread-safe but for step().
class CleanJob {
 public:
  explicit CleanJob(Engine& engine);
  ~CleanJob();

  // Errc::invalid: says what is wrong with the request; busy: one is running, or the filesystem is being unmounted.
  Status start(const CleanRequest& request);
  void stop();  // soon: after at most a segment, and the checkpoint that settles what was done
  void end();   // stops and starts none any more
  CleanState state() const;
  bool is_active() const { return active_.load(std::memory_order_acquire); }

  // One round and the checkpoint after it, on the thread that makes checkpoints.
  void step();

 private:
  void begin();
  cleaner::Task task();
  bool is_enough(const CleanState& state) const;
  void finish(CleanState::Phase phase, std::string reason);
  CleanState::Layout layout() const;

  Engine& engine_;
  mutable Mutex mutex_;
  CleanState state_ GUARDED_BY(mutex_);
  std::atomic<bool> active_{false}, stop_{false};
  bool ended_ GUARDED_BY(mutex_) = false;

  // Of the one that runs; the stepping thread's.
  cleaner::Rules rules_;
  std::unique_ptr<FileWalk> files_;
  bool begun_ = false;
  std::uint64_t started_ns_ = 0, nodes_at_first_ = 0;
  cleaner::Patience patience_;
};

}  // namespace varve::fs
