#include "fs/turn.h"

#include <utility>

#include "base/invariant.h"

namespace varve::fs {

bool Turn::take() {
  const Lock lock(mutex_);
  return !std::exchange(taken_, true);
}

// All are called: the first may find that nothing is left for it to do.
void Turn::give_back() {
  std::vector<std::function<void()>> waiting;
  {
    const Lock lock(mutex_);
    INVARIANT(taken_);
    taken_ = false;
    waiting.swap(waiting_);
  }
  for (const auto& ready : waiting) ready();
}

void Turn::when_free(std::function<void()> ready) {
  {
    const Lock lock(mutex_);
    if (taken_) {
      waiting_.push_back(std::move(ready));
      return;
    }
  }
  ready();
}

}  // namespace varve::fs
