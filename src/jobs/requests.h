// Takes what anybody asks of the work in the background, and wakes the thread for it. Any thread.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/wakeable_thread.h"
#include "jobs/parts.h"
#include "jobs/precedence.h"

namespace varve::jobs {

class Requests {
 public:
  struct Parts {
    WaitList& waiters;  // operations that wait for a checkpoint or for room
    const checkpoint::Checkpoints& checkpoints;
    const snapshots::Snapshots& snapshots;
    const segments::Counters& counters;
    device::IoContext& io;
  };
  explicit Requests(const Parts& parts) : parts_(parts) {}

  WakeableThread& thread() { return thread_; }
  bool has_threads() const;
  // Wakes the threads that look after seals, checkpoints and space.
  void kick();
  // `space`: an operation waits for clean segments, so cleaning is worth another try.
  void ask_for_checkpoint(bool space = false);
  // The same by the thread of background work itself, for its next round.
  void note_space_wanted() { space_noted_ = checkpoint_wanted_ = true; }
  // Operations that wait are to look whether they still need to.
  void wake_waiting();

  bool room_is_waited_for() const;
  // Does something wait for what that thread alone does?
  bool is_waited_for() const;
  std::uint64_t moved() const;                      // blocks, so far
  Events events(std::uint64_t moved_before) const;  // that are waited for

  bool checkpoint_is_wanted() const { return checkpoint_wanted_; }
  bool take_checkpoint() { return checkpoint_wanted_.exchange(false); }
  // Somebody waits for room, or has; then for a checkpoint, too. What was refused during the last round has been let in since, or asks
  // again: that round is not followed by another for it.
  bool take_room();

  // May there be anything that is not in the trees? Then the thread looks now and then.
  bool is_armed() const { return armed_; }  // sequentially consistent: docs/memory-order.md
  void arm() {
    if (!armed_.exchange(true)) kick();
  }
  void disarm() { armed_ = false; }

 private:
  const Parts parts_;
  std::atomic<bool> armed_{false}, checkpoint_wanted_{false};
  std::atomic<bool> space_wanted_{false}, space_noted_{false};  // by operations that wait; by the thread itself
  WakeableThread thread_;
};

}  // namespace varve::jobs
