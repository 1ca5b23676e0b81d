// Inodes in memory: the newest attributes, and the layers of change above the trees.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>
#include <vector>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include "base/mutex.h"
#include "base/tunable.h"
#include "changes/delta.h"
#include "format/item.h"

namespace varve::changes {

// Locks are taken in ascending order of inode number. A pinned inode (one with deltas) stays in the table.
class Inode : public boost::intrusive_ref_counter<Inode, boost::thread_safe_counter> {
 public:
  explicit Inode(Ino number) : ino(number) {}

  const Ino ino;
  SpinningMutex mutex{LockRank::inode};
  // Tells the compiler what it cannot see: no other thread has this inode, or can get it.
  void assume_locked() const ASSERT_CAPABILITY(mutex) {}

  bool loaded GUARDED_BY(mutex) = false;   // attributes are known
  bool missing GUARDED_BY(mutex) = false;  // loaded, and there is no such inode
  format::Attributes attributes GUARDED_BY(mutex);  // newest; `blocks` as of the tree below the oldest layer
  InodeDelta* active GUARDED_BY(mutex) = nullptr;
  InodeDelta* frozen GUARDED_BY(mutex) = nullptr;
  // Of the file's bytes and size: another number, never used before, whenever they may have changed, and in every new
  // object. May be read without the lock.
  std::uint64_t content_version() const { return content_version_.load(std::memory_order_acquire); }
  void change_content() REQUIRES(mutex) { content_version_.store(next_version_.fetch_add(1) + 1, std::memory_order_release); }
  // Likewise, of what may have taken blocks from the file.
  std::uint64_t cleared_version() const REQUIRES_SHARED(mutex) { return cleared_version_; }
  void change_cleared() REQUIRES(mutex) { cleared_version_ = next_version_.fetch_add(1) + 1; }
  bool dated_by_write GUARDED_BY(mutex) = false;  // the last one was direct: it has set the times that the kernel sends some time after it
  mutable std::atomic<bool> nothing_behind{false};  // known to have no blocks behind its end; taken back before some are set aside there
  mutable std::atomic<bool> no_xattrs{false};  // known to have none; an operation that makes a name asks its directory

  bool gone() const REQUIRES_SHARED(mutex) { return missing || (active && active->freed) || (frozen && frozen->freed); }
  // Second chance for eviction; only what is asked for again gets one, so that a walk over everything drops what it has
  // just seen and not what others use.
  std::atomic<bool> recent{false};

 private:
  static inline std::atomic<std::uint64_t> next_version_{0};
  std::atomic<std::uint64_t> content_version_{next_version_.fetch_add(1) + 1};
  std::uint64_t cleared_version_ GUARDED_BY(mutex) = next_version_.fetch_add(1) + 1;
};
using InodePtr = boost::intrusive_ptr<Inode>;

// Thread-safe, sharded. Clean inodes beyond the bound are dropped.
class InodeTable {
 public:
  explicit InodeTable(std::size_t max_inodes) : shard_max_(max_inodes / kShards + 1) {}
  void bound(std::size_t max_inodes);  // another bound, or the same once more: clean ones beyond it are dropped now

  InodePtr get(Ino ino);  // created unloaded if it is not there
  InodePtr find(Ino ino);
  std::size_t size() const;

 private:
  static constexpr std::size_t kShards = 16;
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<Ino, InodePtr> inodes GUARDED_BY(mutex);
    std::vector<Inode*> ring GUARDED_BY(mutex);  // the same ones
    std::size_t hand GUARDED_BY(mutex) = 0;  // where in it the search for something to drop goes on
    unsigned rest GUARDED_BY(mutex) = 0;  // insertions before it is worth searching again
  };
  void evict(Shard& shard) REQUIRES(shard.mutex);

  Tunable<std::size_t> shard_max_;
  Shard shards_[kShards];
};

}  // namespace varve::changes
