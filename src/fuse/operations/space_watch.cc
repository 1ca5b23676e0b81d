#include "fuse/operations/space_watch.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace varve::fuse {

namespace {
constexpr std::uint64_t kLeastHeld = 4u << 20;      // bytes: less would make each write wait for the one before
constexpr std::uint64_t kLeastPatience = 1u << 20;  // bytes
constexpr auto kPruneEvery = std::chrono::milliseconds(100);
constexpr std::size_t kMostPruned = 256;
}  // namespace

void SpaceWatch::limit_with(std::function<void(std::uint64_t bytes)> limit) {
  {
    const Lock lock(mutex_);
    limit_ = std::move(limit);
  }
  look();
}

void SpaceWatch::run() {
  while (thread_.sleep(prunes() ? std::optional<WakeableThread::Time>(kPruneEvery) : std::nullopt)) {
    const auto limit = [this] {
      const Lock lock(mutex_);
      return limit_;
    }();
    if (limit) set_limit(limit);
    if (prunes()) prune();
  }
}

void SpaceWatch::set_limit(const std::function<void(std::uint64_t bytes)>& limit) {
  fs::Operation operation(fs_.operations(), fs::Caller{});
  const auto space = fs_.statfs(operation);
  if (!space.ok()) return;
  const std::uint64_t room = space->available * kBlockSize;
  unseen_.store(0, std::memory_order_relaxed);
  patience_.store(std::max(kLeastPatience, room / 16), std::memory_order_relaxed);
  limit(std::max(kLeastHeld, room - room / 4));
}

void SpaceWatch::prune() {
  const auto files = lost_.files(kMostPruned);
  if (files.empty() || notify_prune(transport_, files) == 0) return;
  can_prune_ = false;  // a kernel that does not know it: it forgets them when it needs the memory
}

}  // namespace varve::fuse
