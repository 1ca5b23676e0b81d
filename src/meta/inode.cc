#include "meta/inode.h"

namespace varve::meta {

InodePtr InodeTable::get(Ino ino) {
  Shard& shard = shards_[ino.v % kShards];
  std::lock_guard lock(shard.mutex);
  auto found = shard.inodes.find(ino);
  if (found != shard.inodes.end()) {
    found->second->recent.store(true, std::memory_order_relaxed);
    return found->second;
  }
  if (shard.inodes.size() >= shard_max_) evict(shard);
  return shard.inodes.emplace(ino, InodePtr(new Inode(ino))).first->second;
}

InodePtr InodeTable::find(Ino ino) {
  Shard& shard = shards_[ino.v % kShards];
  std::lock_guard lock(shard.mutex);
  auto found = shard.inodes.find(ino);
  return found == shard.inodes.end() ? nullptr : found->second;
}

// Second chance over a few buckets. Only an inode that nobody else holds can go: nobody can take it meanwhile, since
// all references start from this table, under its lock.
void InodeTable::evict(Shard& shard) {
  if (shard.rest && shard.rest--) return;
  const std::size_t buckets = shard.inodes.bucket_count();
  std::size_t dropped = 0;
  for (std::size_t step = 0; step < 64 && dropped < 4; ++step) {
    const std::size_t bucket = shard.hand++ % buckets;
    std::vector<Ino> idle;
    for (auto at = shard.inodes.begin(bucket); at != shard.inodes.end(bucket); ++at) {
      Inode& inode = *at->second;
      if (inode.use_count() != 1 || inode.active || inode.frozen) continue;
      if (inode.recent.exchange(false, std::memory_order_relaxed)) continue;
      idle.push_back(inode.ino);
    }
    for (Ino ino : idle) dropped += shard.inodes.erase(ino);
  }
  if (!dropped) shard.rest = 64;  // all of them have changes that no checkpoint has taken yet
}

std::size_t InodeTable::size() const {
  std::size_t count = 0;
  for (const Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    count += shard.inodes.size();
  }
  return count;
}

}  // namespace varve::meta
