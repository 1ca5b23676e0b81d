// How many references the kernel holds to each inode: 16 bytes an inode, open addressing.
#pragma once

#include <cstdint>
#include <mutex>
#include <unordered_set>
#include <vector>

#include "base/types.h"

namespace varve::fs {

// Thread-safe, sharded.
class References {
 public:
  void add(Ino ino, std::uint64_t count);
  // Returns what is left.
  std::uint64_t drop(Ino ino, std::uint64_t count);
  std::uint64_t count(Ino ino) const;
  std::uint64_t inodes() const;

  // Unlinked inodes that are still referred to. Whoever takes one out frees it.
  void add_orphan(Ino ino);
  bool take_orphan(Ino ino);
  std::vector<Ino> take_orphans();

 private:
  static constexpr std::size_t kShards = 16;
  struct Slot {
    std::uint64_t ino = 0;  // 0: empty
    std::uint64_t count = 0;
  };
  struct Shard {
    mutable std::mutex mutex;
    std::vector<Slot> slots;
    std::size_t used = 0;

    std::size_t place_of(std::uint64_t ino) const;  // where it is, or the empty slot where it would go
    void grow();
    void erase(std::size_t at);  // backward shift: no tombstones
  };
  static std::size_t hash(std::uint64_t ino) { return (ino * 0x9E3779B97F4A7C15ULL) >> 20; }
  Shard& shard_of(Ino ino) { return shards_[ino.v % kShards]; }
  const Shard& shard_of(Ino ino) const { return shards_[ino.v % kShards]; }

  Shard shards_[kShards];
  std::mutex orphans_mutex_;
  std::unordered_set<Ino> orphans_;
};

}  // namespace varve::fs
