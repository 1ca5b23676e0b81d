// What is not in the trees yet: the active delta, which operations change, and the frozen one, which a checkpoint is merging.
#pragma once

#include <functional>
#include <memory>

#include "base/gate.h"
#include "changes/delta.h"

namespace varve::changes {

class Changes {
 public:
  Changes(Gate& gate, std::uint64_t generation) : gate_(gate), active_(std::make_unique<Delta>(generation)) {}

  Delta& active() REQUIRES_SHARED(the_gate) { return *active_; }
  const Delta& active() const REQUIRES_SHARED(the_gate) { return *active_; }
  const Delta* frozen() const REQUIRES_SHARED(the_gate) { return frozen_.get(); }
  // Before there are other threads.
  Delta& first() NO_THREAD_SAFETY_ANALYSIS { return *active_; }
  // For the checkpoint that froze it and drops it.
  Delta& merging() NO_THREAD_SAFETY_ANALYSIS { return *frozen_; }

  // Those that are in no trees of `merged` (a generation) yet, newest first.
  void for_each_above(std::uint64_t merged, const std::function<void(const Delta&)>& visit) const REQUIRES_SHARED(the_gate);
  bool any() const REQUIRES_SHARED(the_gate) { return frozen_ || active_->records(); }
  // Of both, in memory.
  std::uint64_t bytes() const REQUIRES_SHARED(the_gate) { return active_->bytes() + (frozen_ ? frozen_->bytes() : 0); }

  // Of the active one.
  std::uint64_t count_records() const EXCLUDES(the_gate);
  std::uint64_t count_bytes() const EXCLUDES(the_gate);

  void freeze(std::uint64_t next_generation) REQUIRES(the_gate);
  // What was frozen, which the caller destroys when the gate is open again: of a million records that takes a while.
  std::unique_ptr<Delta> release_merged() REQUIRES(the_gate) { return std::move(frozen_); }

 private:
  Gate& gate_;
  std::unique_ptr<Delta> active_ GUARDED_BY(the_gate);
  std::unique_ptr<Delta> frozen_ GUARDED_BY(the_gate);
};

}  // namespace varve::changes
