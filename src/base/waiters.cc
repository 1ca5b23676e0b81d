#include "base/waiters.h"

#include "base/invariant.h"

namespace varve {

void Waiters::add(std::function<void()> ready) {
  {
    const Lock lock(mutex_);
    if (!ended_) {
      waiting_.push_back(std::move(ready));
      return;
    }
  }
  ready();
}

void Waiters::wake() {
  std::vector<std::function<void()>> waiting;
  {
    const Lock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (auto& ready : waiting) ready();
}

bool Waiters::any() const {
  const Lock lock(mutex_);
  return !waiting_.empty();
}

void Waiters::end() {
  {
    const Lock lock(mutex_);
    INVARIANT(!ended_);  // the first reason stays, and ends it once
    ended_ = true;
  }
  wake();
}

}  // namespace varve
