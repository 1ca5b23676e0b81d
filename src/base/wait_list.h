// Calls that wait for something to happen: a checkpoint, room for writes, a turn. Thread-safe.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace varve {

class WaitList {
 public:
  // Calls `ready` at the next wake(); at once after end().
  void add(std::function<void()> ready) {
    add_while([] { return true; }, std::move(ready));
  }
  // The same, but at once if `waits` does not hold. A thread that makes an end of that and then calls wake() reaches all that were added.
  template <class Condition>
  void add_while(Condition waits, std::function<void()> ready) {
    {
      const Lock lock(mutex_);
      if (!ended_ && waits()) {
        waiting_.push_back(std::move(ready));
        return;
      }
    }
    ready();
  }
  void wake();  // all are called, outside the lock
  bool any() const;
  void end();  // nothing comes any more

 private:
  mutable Mutex mutex_;
  std::vector<std::function<void()>> waiting_ GUARDED_BY(mutex_);
  bool ended_ GUARDED_BY(mutex_) = false;
};

}  // namespace varve
