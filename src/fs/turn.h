// Something that one operation at a time may do, and where the others wait for it. Thread-safe.
#pragma once

#include <functional>
#include <vector>

#include "base/mutex.h"

namespace varve::fs {

class Turn {
 public:
  bool take();  // false: another one has it
  void give_back();
  // Calls `ready` when taking it is worth another try; maybe at once.
  void when_free(std::function<void()> ready);

 private:
  Mutex mutex_;
  bool taken_ GUARDED_BY(mutex_) = false;
  std::vector<std::function<void()>> waiting_ GUARDED_BY(mutex_);
};

}  // namespace varve::fs
