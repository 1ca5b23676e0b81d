// Operations that wait for the next checkpoint to settle, or for a search for space to end. Thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"

namespace varve {

class Waiters {
 public:
  // Calls `ready` at the next wake(); at once after end().
  void add(std::function<void()> ready);
  void wake();
  bool any() const;
  void end();  // no checkpoint comes any more

 private:
  mutable Mutex mutex_;
  std::vector<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve
