#include "changes/inode.h"

#include "base/invariant.h"

namespace varve::changes {

namespace {
constexpr unsigned kMostSteps = 64, kMostDropped = 4;  // each time
// Insertions after a search that has only seen what is held. New ones, held too, come where the hand goes: it must be faster.
constexpr unsigned kRest = kMostSteps / 8;
}

InodePtr InodeTable::get(Ino ino) {
  Shard& shard = shards_[ino.v % kShards];
  const Lock lock(shard.mutex);
  auto found = shard.inodes.find(ino);
  if (found != shard.inodes.end()) {
    found->second->recent.store(true, std::memory_order_relaxed);
    return found->second;
  }
  if (shard.inodes.size() >= shard_max_) evict(shard);
  InodePtr inode(new Inode(ino));
  shard.inodes.emplace(ino, inode);
  shard.ring.push_back(inode.get());
  return inode;
}

InodePtr InodeTable::find(Ino ino) {
  Shard& shard = shards_[ino.v % kShards];
  const Lock lock(shard.mutex);
  auto found = shard.inodes.find(ino);
  return found == shard.inodes.end() ? nullptr : found->second;
}

// Second chance: the hand goes around the ring, a few steps each time. Only an inode that nobody else holds can go: nobody
// can take it meanwhile, since all references start from this table, under its lock.
void InodeTable::evict(Shard& shard) {
  if (shard.rest && shard.rest--) return;
  unsigned dropped = 0;
  bool all_held = true;
  for (unsigned step = 0; step < kMostSteps && dropped < kMostDropped && !shard.ring.empty(); ++step) {
    if (shard.hand >= shard.ring.size()) shard.hand = 0;
    Inode& inode = *shard.ring[shard.hand];
    bool held = inode.use_count() != 1;
    if (!held) {
      inode.assume_locked();  // only this table has it, and is locked
      held = inode.active || inode.frozen;
    }
    all_held = all_held && held;
    if (held || inode.recent.exchange(false, std::memory_order_relaxed)) {
      ++shard.hand;
      continue;
    }
    MEMORY_INVARIANT(shard.ring.size() == shard.inodes.size());
    shard.ring[shard.hand] = shard.ring.back();
    shard.ring.pop_back();
    shard.inodes.erase(inode.ino);
    ++dropped;
  }
  if (all_held) shard.rest = kRest;  // all of them have changes that no checkpoint has taken yet
}

void InodeTable::bound(std::size_t max_inodes) {
  shard_max_ = max_inodes / kShards + 1;
  for (Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    // The first turn takes second chances, and the second one drops: after two that were in vain all the others are held.
    for (std::size_t vain = 0; shard.inodes.size() > shard_max_ && vain < 2 * shard.ring.size();) {
      const std::size_t before = shard.inodes.size();
      shard.rest = 0;
      evict(shard);
      vain = shard.inodes.size() < before ? 0 : vain + kMostSteps;
    }
  }
}

std::size_t InodeTable::size() const {
  std::size_t count = 0;
  for (const Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    count += shard.inodes.size();
  }
  return count;
}

}  // namespace varve::changes
