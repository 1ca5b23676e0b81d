#include "fuse/operations/cache_probes.h"

#include <utility>

namespace varve::fuse {

void CacheProbes::ask(Ino ino, std::uint64_t offset, std::function<void(bool)> done) {
  std::uint64_t unique = 0;
  {
    const Lock lock(mutex_);
    if (!stopping_) waiting_.emplace(unique = ++last_, done);
  }
  if (unique == 0) return done(false);
  if (notify_retrieve(transport_, ino, offset, 1, unique) == 0) return;
  if (const auto waiting = take(unique)) waiting(false);
}

void CacheProbes::answer(std::uint64_t unique, std::uint64_t bytes) {
  if (const auto waiting = take(unique)) waiting(bytes > 0);
}

std::function<void(bool)> CacheProbes::take(std::uint64_t unique) {
  const Lock lock(mutex_);
  auto found = waiting_.extract(unique);
  return found ? std::move(found.mapped()) : nullptr;
}

void CacheProbes::stop() {
  std::map<std::uint64_t, std::function<void(bool)>> waiting;
  {
    const Lock lock(mutex_);
    stopping_ = true;
    waiting.swap(waiting_);
  }
  for (const auto& [unique, done] : waiting) done(false);
}

}  // namespace varve::fuse
