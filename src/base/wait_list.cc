#include "base/wait_list.h"

#include "base/invariant.h"

namespace varve {

void WaitList::wake() {
  std::vector<std::function<void()>> waiting;
  {
    const Lock lock(mutex_);
    waiting.swap(waiting_);
  }
  for (auto& ready : waiting) ready();
}

bool WaitList::any() const {
  const Lock lock(mutex_);
  return !waiting_.empty();
}

void WaitList::end() {
  {
    const Lock lock(mutex_);
    INVARIANT(!ended_);  // the first reason stays, and ends it once
    ended_ = true;
  }
  wake();
}

}  // namespace varve
