// Follows the memory group of a mount: its limit may change, and the daemon may get into another one. Belongs to one thread.
#pragma once

#include <cstddef>

#include "base/memory_group.h"
#include "daemon/memory_plan.h"

namespace varve::daemon {

class GroupWatch {
 public:
  static constexpr int kPauseMs = 10'000;  // between two looks

  // As at the mount. `chosen`: a bound of the user's, which stays; 0: there is none.
  GroupWatch(const MemoryPlan& plan, const MemoryGroup& group, std::size_t chosen) : plan_(plan), group_(group), chosen_(chosen) {}

  struct Step {
    bool is_new = false;      // plan() is another one
    bool gives_back = false;  // caches drop once more what has become free, and the heap gives it back
    bool tells = false;       // the log says what the bound is now, or that it does not fit
  };
  Step look(const MemoryGroup& now);

  const MemoryPlan& plan() const { return plan_; }
  const MemoryGroup& group() const { return group_; }  // that the plan follows

 private:
  bool is_news(const MemoryGroup& now) const;

  MemoryPlan plan_;
  MemoryGroup group_;
  std::size_t chosen_;
  unsigned give_backs_ = 0;  // looks to come that give back
  unsigned lines_ = 0;       // of the log, each for as many looks as must come between two of them on an average
  bool is_untold_ = false;
};

}  // namespace varve::daemon
