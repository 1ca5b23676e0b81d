// Makes clean segments, by an exchangeable strategy, with victims chosen by one policy and blocks placed by another. The
// daemon's background cleaning and `varve clean` both go through it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "cleaner/bad_blocks.h"
#include "cleaner/cost_ledger.h"
#include "cleaner/history.h"
#include "cleaner/placement.h"
#include "cleaner/strategy.h"
#include "cleaner/victim_rule.h"

namespace varve::checkpoint {
struct CheckpointRequest;
}

namespace varve::cleaner {

// How names are spelled: parameters.h. Empty: the one that the mount uses.
struct RuleNames {
  std::string_view strategy, victims, placement;
};

// What one task goes by. The objects live as long as somebody holds them.
struct Rules {
  std::shared_ptr<Strategy> strategy;
  std::shared_ptr<VictimRule> victims;
  std::shared_ptr<Placement> placement;
};

// Used by one thread, the one that also runs checkpoints, but for what says otherwise.
class Cleaner {
 public:
  // Errc::invalid: no such policy or strategy.
  static Result<std::unique_ptr<Cleaner>> make(store::Store& store, const RuleNames& names);
  ~Cleaner();

  // One round; the caller makes the checkpoint that Round asks for, which frees what was emptied.
  Round run_round(const Task& task, const Rules& rules);
  // By the mount's rules, for want of room.
  Round run_round(bool waited_for);
  // By the mount's strategy, for order, as there is time.
  Round run_idle_round(std::function<bool()> stop);
  Forecast forecast(const Task& task, const Rules& rules);
  // A task with a strategy of its own begins and ends; what that has done with files so far.
  void begin(const Rules& rules) EXCLUDES(the_gate) { rules.strategy->begin(store_); }
  void end(const Rules& rules) EXCLUDES(the_gate) { rules.strategy->end(store_); }
  FileCounts files(const Rules& rules) { return rules.strategy->files(store_); }

  // Notes how many blocks users wrote from the start of the last round until it was settled: the next one leaves them room.
  void note_meanwhile(std::uint64_t blocks) { meanwhile_ = blocks; }

  // Makes the checkpoint that settles the last round, and notes how long it took and the device was busy with it. The next round moves what
  // can be moved in a few times that: those that wait for room get some soon, and most of the time still goes into moving.
  Status settle(const checkpoint::CheckpointRequest& request);
  // Users write into holes, and there may be news of what that costs.
  void reconsider();

  // How many clean segments beyond the users' reserve it keeps ready; also what one round tries to gain.
  std::uint64_t ahead() const;

  // Those of the mount, but what leaves the end of a filesystem that is to shrink.
  Rules leaving_rules() const;
  // Is it known to hold bad blocks?
  bool is_pinned(SegmentId segment) const { return bad_.pin_of(segment) != BadBlocks::Pin::none; }
  // It has another size: policies are told, and keep what they have learned.
  Status rescale() EXCLUDES(the_gate);

  // After a checkpoint: what bad blocks pin may have gone.
  void count_pinned();

  // --- by any thread ---
  // From the next round, or the next write, on. Errc::invalid: no such policy; nothing has changed.
  Status set_strategy(std::string_view spelling) EXCLUDES(the_gate);
  Status set_victims(std::string_view spelling) EXCLUDES(the_gate);
  Status set_placement(std::string_view spelling) EXCLUDES(the_gate);
  struct Spellings {
    std::string strategy, victims, placement;
  };
  Spellings spellings() const;  // of the mount's
  std::string state() const;
  static constexpr const char* kResting = "idle: enough clean segments";  // its state when a task that was not for room has ended
  void set_state(std::string state);
  bool works_when_idle() const;
  // As the last round knew them: segments that bad blocks pin, the dead blocks in them, and of these those that the strategy of the
  // mount does not write. They can only be written as holes.
  std::uint64_t pinned_segments() const { return pinned_segments_; }
  std::uint64_t pinned_garbage() const { return pinned_garbage_; }
  std::uint64_t lost_room() const { return lost_room_; }
  History& history() { return history_; }
  std::string explanation() const;  // of the strategy's latest decision; may be empty
  // A new strategy, and new objects for the other names that are given, else those of the mount. Errc::invalid says what
  // there is.
  Result<Rules> rules(const RuleNames& names) const;

  // Stays until the gate is left.
  const Placement& placement() const REQUIRES_SHARED(the_gate) { return *placement_now_.load(std::memory_order_acquire); }

 private:
  explicit Cleaner(store::Store& store);
  CostLedger::Reading reading() const;
  std::uint64_t gain_for_waiting();
  void note_settling(std::uint64_t ns, const device::DeviceSpan& device);
  void note_cost(const Round& round, std::uint64_t plugged, const device::DeviceSpan& took);
  Rules mount_rules() const;
  static Round run_fruitfully(Strategy& strategy, Workbench& bench);
  void pin_leftovers();
  PastRound before(const Task& task, const Rules& rules) const;  // what the history notes of a round that begins
  Result<std::shared_ptr<Placement>> new_placement(std::string_view spelling) const;

  store::Store& store_;
  std::uint64_t meanwhile_ = 0, settling_ns_ = 0;
  std::uint64_t least_gain_ = 0, waited_at_ = 0;  // of the last round that was waited for: blocks; log clock
  CostLedger costs_;
  BadBlocks bad_;
  std::atomic<std::uint64_t> pinned_segments_{0}, pinned_garbage_{0}, lost_room_{0};
  std::vector<SegmentId> emptied_;      // by the last round, and…
  std::uint64_t emptied_since_ = 0;     // …the checkpoint before it
  mutable Mutex mutex_{LockRank::policies};  // of the four below; they are replaced, never changed
  Rules rules_ GUARDED_BY(mutex_);
  std::string strategy_spelling_ GUARDED_BY(mutex_), placement_spelling_ GUARDED_BY(mutex_);
  std::atomic<Placement*> placement_now_{nullptr};
  mutable Mutex state_mutex_;
  std::string state_ GUARDED_BY(state_mutex_) = kResting;
  History history_;
};

}  // namespace varve::cleaner
