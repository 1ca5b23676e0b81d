// Makes clean segments: picks victims and moves what lives in them. Copying only, for now: live blocks go to the
// cleaner's own head (the cold group).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "cleaner/policy.h"
#include "meta/store.h"

namespace varve::cleaner {

// Used by one thread, the one that also runs checkpoints; state() by any.
class Cleaner {
 public:
  Cleaner(meta::Store& store, std::string_view policy);

  // Moves the live file blocks of some victims; returns the victims, whose tree nodes the next checkpoint must take
  // along. They are clean once that has settled. Empty: nothing to gain, state() says why.
  std::vector<SegmentId> run_round();

  // How many clean segments beyond the users' reserve it keeps ready; also what one round tries to gain.
  std::uint64_t ahead() const;

  std::string state() const;
  std::string policy_name() const { return std::string(policy_->name()); }
  static constexpr unsigned kColdGroup = 1;

 private:
  std::vector<SegmentSummary> summaries() const;
  std::uint64_t metadata_cost(const Selection& selection) const;
  void set_state(std::string state);

  meta::Store& store_;
  std::unique_ptr<VictimPolicy> policy_;
  mutable std::mutex mutex_;
  std::string state_ = "idle: enough clean segments";
};

}  // namespace varve::cleaner
