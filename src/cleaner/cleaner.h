// Makes clean segments: picks victims and moves what lives in them, each block to the group that the placement gives it.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cleaner/victim_rule.h"
#include "meta/store.h"

namespace varve::cleaner {

class Mover;

// Used by one thread, the one that also runs checkpoints, but for what says otherwise.
class Cleaner {
 public:
  // Errc::invalid: no such policy.
  static Result<std::unique_ptr<Cleaner>> make(meta::Store& store, std::string_view victims, std::string_view placement);

  // Moves the live file blocks of some victims; returns the victims, whose tree nodes the next checkpoint must take
  // along. They are clean once that has settled. Empty: nothing to gain, state() says why.
  // waited_for: somebody cannot go on until there is room.
  std::vector<SegmentId> run_round(bool waited_for);

  // How many clean segments beyond the users' reserve it keeps ready; also what one round tries to gain.
  std::uint64_t ahead() const;

  // --- by any thread ---
  // From the next round, or the next write, on. Not inside the gate. Errc::invalid: no such policy; nothing has changed.
  Status set_victims(std::string_view spelling);
  Status set_placement(std::string_view spelling);
  std::string victims() const;
  std::string placement_name() const;
  std::string state() const;

  // Inside the gate: stays until it is left.
  const Placement& placement() const { return *placement_now_.load(std::memory_order_acquire); }

 private:
  explicit Cleaner(meta::Store& store) : store_(store) {}
  std::vector<SegmentFacts> facts() const;
  Victims choose(const std::vector<SegmentFacts>& facts, VictimRule& rule, bool urgent) const;
  std::uint64_t metadata_cost(const Victims& victims) const;
  bool is_worth_it(const Victims& victims) const;
  unsigned give_up_heads(std::uint64_t before);  // Log::give_up_heads
  std::vector<SegmentId> move(const Victims& victims, const std::vector<SegmentFacts>& facts, Placement& placement);
  Status move_segment(Mover& mover, const SegmentFacts& segment, const Placement& placement, std::uint64_t& nodes);
  void set_state(std::string state);

  meta::Store& store_;
  mutable std::mutex mutex_;  // of the three below; they are replaced, never changed
  std::shared_ptr<VictimRule> rule_;
  std::shared_ptr<Placement> placement_;
  std::string placement_spelling_;
  std::atomic<Placement*> placement_now_{nullptr};
  mutable std::mutex state_mutex_;
  std::string state_ = "idle: enough clean segments";
};

}  // namespace varve::cleaner
