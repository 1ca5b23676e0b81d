// How many references the kernel holds to each inode it has cached: at most 16 bytes an inode on average, whatever their
// number. Open addressing with linear probing and backward-shift deletion (Knuth, TAOCP 3, 6.4, algorithm R); number
// and count share a word, because nearly all inodes have few references and numbers far below 2^40.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/mutex.h"
#include "base/types.h"

namespace varve::operation {

// Thread-safe, sharded.
class References {
 public:
  // `are_counted`: else nobody tells when one goes, and none is added.
  explicit References(bool are_counted = true) : are_counted_(are_counted) {}

  void add(Ino ino, std::uint64_t count);
  // Returns what is left.
  std::uint64_t drop(Ino ino, std::uint64_t count);
  std::uint64_t count(Ino ino) const;
  std::uint64_t inodes() const;
  std::vector<Ino> all() const;  // those inodes
  std::uint64_t bytes() const;  // memory it takes for them

  // Unlinked inodes that are still referred to. The thread that takes one out frees it.
  void add_orphan(Ino ino);
  bool take_orphan(Ino ino);
  std::vector<Ino> take_orphans();

 private:
  static constexpr std::size_t kShards = 16;

  class Slot {
   public:
    static constexpr unsigned kCountBits = 24;
    static constexpr std::uint64_t kMaxCount = (1u << kCountBits) - 1;
    static constexpr std::uint64_t kMaxIno = (1ULL << (64 - kCountBits)) - 1;

    Slot() = default;
    Slot(std::uint64_t ino, std::uint64_t count) : word_(ino << kCountBits | count) {}
    bool empty() const { return word_ == 0; }
    std::uint64_t ino() const { return word_ >> kCountBits; }
    std::uint64_t count() const { return word_ & kMaxCount; }

   private:
    std::uint64_t word_ = 0;
  };

  class Shard {
   public:
    mutable Mutex mutex;

    std::uint64_t count(std::uint64_t ino) const REQUIRES(mutex);
    void set(std::uint64_t ino, std::uint64_t count) REQUIRES(mutex);  // 0: forgotten
    std::uint64_t inodes() const REQUIRES(mutex) { return used_ + wide_.size(); }
    void append_to(std::vector<Ino>& all) const REQUIRES(mutex);
    std::uint64_t bytes() const REQUIRES(mutex) { return slots_.capacity() * sizeof(Slot); }

   private:
    std::size_t home_of(std::uint64_t ino) const REQUIRES(mutex);
    std::size_t after(std::size_t at) const REQUIRES(mutex) { return at + 1 == slots_.size() ? 0 : at + 1; }
    std::size_t distance(std::size_t from, std::size_t to) const REQUIRES(mutex) {
      return to >= from ? to - from : to + slots_.size() - from;
    }
    std::size_t place_of(std::uint64_t ino) const REQUIRES(mutex);  // where it is, or the empty slot where it would go
    void put(std::uint64_t ino, std::uint64_t count) REQUIRES(mutex);
    void remove(std::uint64_t ino) REQUIRES(mutex);
    void resize(std::size_t slots) REQUIRES(mutex);
    void erase(std::size_t at) REQUIRES(mutex);

    std::vector<Slot> slots_ GUARDED_BY(mutex);
    std::size_t used_ GUARDED_BY(mutex) = 0;
    std::unordered_map<std::uint64_t, std::uint64_t> wide_ GUARDED_BY(mutex);  // what does not fit into a slot
  };

  Shard& shard_of(Ino ino) { return shards_[ino.v % kShards]; }
  const Shard& shard_of(Ino ino) const { return shards_[ino.v % kShards]; }

  const bool are_counted_;
  Shard shards_[kShards];
  Mutex orphans_mutex_;
  std::unordered_set<Ino> orphans_ GUARDED_BY(orphans_mutex_);
};

}  // namespace varve::operation
