// A change of size that somebody asked for (checkpoint/reshaping.h). It runs on the thread that makes checkpoints, between what the
// filesystem itself needs. Growing is one checkpoint. Shrinking goes in bounded rounds; stopped at any moment, or after a crash, the
// filesystem has its former size, and nothing is lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "cleaner/cleaner.h"

namespace varve::fs {

class Engine;

struct ResizeRequest {
  std::uint64_t bytes = 0;  // rounded down to whole blocks; 0: as large as the device is
};

struct ResizeState {
  enum class Phase : std::uint8_t { never, running, stopped, finished, failed };
  Phase phase = Phase::never;
  std::string reason;  // why it ended
  std::string doing;
  std::uint64_t device_blocks = 0;   // of the device
  std::uint64_t blocks = 0;          // of the filesystem, now
  std::uint64_t least_blocks = 0;    // to which it could be shrunk now, as far as can be told
  std::uint64_t from = 0, to = 0;    // blocks: what the last request was about
  std::uint64_t segment_blocks = 0;
  std::uint64_t rounds = 0;
  std::uint64_t moved = 0;           // blocks of files
  std::uint64_t left_at_first = 0, left = 0;  // blocks that live behind the new end
  std::vector<std::uint64_t> stuck;  // segments that could not be emptied, the first of them
  double seconds = 0;
};
const char* name_of(ResizeState::Phase phase);

// Thread-safe but for step() and abandon().
class ResizeJob {
 public:
  explicit ResizeJob(Engine& engine) : engine_(engine) {}

  // Errc::invalid, no_space, unsupported: says what is wrong with that size, and which one would do. Errc::busy: one is under way, or
  // something that does not go with it. A size that it has already is no mistake.
  Status start(const ResizeRequest& request);
  void stop();  // soon: after a round, and the checkpoint that settles it
  void end();   // stops and starts none any more
  ResizeState state() const;
  bool is_active() const { return active_.load(std::memory_order_acquire); }

  // A part of it, on the thread that makes checkpoints.
  void step();
  bool waits() const { return waits_; }  // the last step has found nothing to do yet; the same thread
  // On the last thread: what is under way ends, and the filesystem stays as it was.
  void abandon();

 private:
  enum class Kind : std::uint8_t { none, growing, shrinking };
  Status claim();
  Result<std::uint64_t> wanted_blocks(const ResizeRequest& request);
  Status check(std::uint64_t blocks) const;
  Status grow();
  void begin_shrinking();
  void shrink_step();
  void retreat();
  cleaner::Round move_some();
  void note(const cleaner::Round& round);
  bool gains();
  void reach_end();
  void give_up(std::string why);
  void finish(ResizeState::Phase phase, std::string reason);

  std::uint64_t present_blocks() const;
  std::uint64_t least_blocks() const;
  std::uint64_t live_from(std::uint64_t segment) const;
  std::vector<std::uint64_t> stuck_from(std::uint64_t segment) const;
  bool only_discards_are_left() const;

  Engine& engine_;
  mutable Mutex mutex_;
  ResizeState state_ GUARDED_BY(mutex_);
  std::atomic<bool> active_{false}, stop_{false};
  bool ended_ GUARDED_BY(mutex_) = false, starting_ GUARDED_BY(mutex_) = false;

  // Of the one that runs; the stepping thread's.
  Kind kind_ = Kind::none;
  bool begun_ = false, waits_ = false;
  std::uint64_t aim_ = 0;  // segments
  cleaner::Rules rules_;
  std::uint64_t started_ns_ = 0;
  unsigned fruitless_ = 0;
  std::uint64_t least_left_ = 0, lowest_limit_ = 0, least_in_use_ = 0, most_clean_ = 0;
};

}  // namespace varve::fs
