// The delta map: everything that changed since the newest checkpoint froze, by inode. The active one takes the records
// of operations; a checkpoint freezes it (from then on it never changes) and merges it into the trees.
//
// An InodeDelta is guarded by the lock of its Inode while it is active; a frozen one is read without locks.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "format/item.h"
#include "format/record.h"
#include "log/payload.h"
#include "tree/block_map.h"
#include "tree/range_map.h"

namespace varve::changes {

class Inode;
struct InodeDelta;

// A block that waits for the next chunk. `owner` is null once it is not wanted any more (overwritten, truncated).
struct PendingBlock : log::PayloadBlock {
  using log::PayloadBlock::PayloadBlock;
  InodeDelta* owner = nullptr;
  std::uint64_t block = 0;
  std::uint8_t group = 0;
  bool needs_block = false;  // it is never sealed as a tail: the file owns a block there, or is to own one
  bool is_logged = false;    // its bytes are in a chunk as a tail; it gets its block before a checkpoint
};
using PendingPtr = boost::intrusive_ptr<PendingBlock>;

struct AddedEntry {
  Ino ino;
  std::uint8_t type = 0;
  std::string name;
};

struct DirectoryDelta {
  std::map<std::uint64_t, AddedEntry> added;  // by cookie
  std::unordered_map<std::string_view, std::uint64_t> by_name;  // of `added`; views into it
  std::map<std::uint64_t, std::string> removed;  // cookies of older layers, with their names; in `added`, too: it leads elsewhere now

  std::set<std::uint64_t> unsealed_added;
  std::map<std::uint64_t, std::string> unsealed_removed;

  void add(std::uint64_t cookie, AddedEntry entry);
  // Takes the entry away wherever it is; `sealed_too`: replay, nothing is unsealed.
  void remove(std::uint64_t cookie, std::string_view name, bool replaying);
  // The name leads to another inode and keeps its cookie. To the log that is an entry that goes and one that comes: replayed without a
  // look at older layers, one that only comes would leave theirs behind when it goes.
  void replace(std::uint64_t cookie, AddedEntry entry);

 private:
  void forget_name(std::string_view name, std::uint64_t cookie);
};

using TailBytes = std::shared_ptr<const format::Bytes>;  // with which a tail begins; zeros follow

struct FileDelta {
  tree::BlockMap blocks;   // these come before…
  tree::RangeMap cleared;  // …these, and both before older layers
  std::vector<tree::ClearedRange> unsealed_cleared;
  std::map<std::uint64_t, TailBytes> tails;  // of the blocks whose place is none (tree::BlockPlace::is_tail)
};

using XattrChanges = std::map<std::string, std::optional<format::Bytes>, std::less<>>;

// How many blocks a file owns now, beside what older layers say.
struct OwnedChange {
  std::int64_t change = 0;               // estimated, never too small: what may have been there counts as not
  std::uint64_t uncertain = 0;           // that it counts as new although they may have been there
  bool emptied = false;                  // of all blocks that older layers know: `change` counts from nothing
  std::optional<std::uint64_t> merged;   // exact count in the tree that this delta was merged into; none: the merge has not changed it
};

// What the next chunk must carry of an inode.
struct UnsealedChanges {
  bool listed = false;  // in Unsealed
  bool attributes = false;
  bool freed = false;
  bool orphan = false;
  bool symlink = false;
  std::set<std::string> xattrs;
  std::vector<std::uint64_t> moved;  // file blocks a cleaner has moved
};

struct InodeDelta {
  explicit InodeDelta(Ino number) : ino(number) {}

  Ino ino;
  Inode* inode = nullptr;       // null during replay
  std::uint64_t generation = 0;  // of the delta it belongs to
  bool created = false;          // older layers know nothing of this inode
  bool freed = false;
  bool has_attributes = false;
  format::Attributes attributes;  // valid if has_attributes
  std::optional<bool> orphan;     // set or cleared
  std::optional<std::string> symlink;
  XattrChanges xattrs;
  std::unique_ptr<DirectoryDelta> directory;
  std::unique_ptr<FileDelta> file;

  OwnedChange owned;
  UnsealedChanges unsealed;
  bool sealed_once = false;

  FileDelta& file_delta() {
    if (!file) file = std::make_unique<FileDelta>();
    return *file;
  }
  DirectoryDelta& directory_delta() {
    if (!directory) directory = std::make_unique<DirectoryDelta>();
    return *directory;
  }
  bool vanished() const { return freed && created && !sealed_once; }  // nobody outside memory ever heard of it
};

// All InodeDeltas of one generation.
class Delta {
 public:
  explicit Delta(std::uint64_t generation) : generation_(generation) {}

  std::uint64_t generation() const { return generation_; }
  InodeDelta& add(Ino ino);  // thread-safe
  // After the freeze: sorted by inode.
  void sort();
  const std::vector<std::unique_ptr<InodeDelta>>& inodes() const { return inodes_; }

  void count(std::uint64_t records, std::uint64_t bytes) {
    records_.fetch_add(records, std::memory_order_relaxed);
    bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  void uncount_bytes(std::uint64_t bytes) { bytes_.fetch_sub(bytes, std::memory_order_relaxed); }
  std::uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

  // What merging it will do to the inode file, at most (headroom.h): places that change, being single keys or the ends
  // of ranges of them, and bytes of items that come new.
  void burden(std::uint64_t places, std::uint64_t item_bytes) {
    places_.fetch_add(places, std::memory_order_relaxed);
    item_bytes_.fetch_add(item_bytes, std::memory_order_relaxed);
  }
  std::uint64_t places() const { return places_.load(std::memory_order_relaxed); }
  std::uint64_t item_bytes() const { return item_bytes_.load(std::memory_order_relaxed); }
  // Blocks come new here and there in this segment.
  void scatter(SegmentId segment) REQUIRES(the_gate) { scattered_.insert(segment); }
  std::uint64_t scattered() const REQUIRES_SHARED(the_gate) { return scattered_.size(); }  // such segments

  // Estimates for the charge; exact after each checkpoint.
  std::atomic<std::int64_t> data_change{0};    // file blocks
  std::atomic<std::uint64_t> uncertain{0};       // by how much it may be too high, at most: nobody has looked up what was there
  std::atomic<std::uint64_t> assumed{0};         // that were written as if they replaced others, which nobody has looked up
  std::atomic<std::int64_t> reserved_change{0};  // unwritten blocks
  // With snapshots: blocks that the trees let go and that may have to be kept, of them those that no new ones take the place of, and
  // blocks that a cleaner has moved.
  std::atomic<std::uint64_t> kept{0}, freed{0}, moved{0};
  // The same as `kept` of those that none but an automatic snapshot may hold.
  std::atomic<std::uint64_t> loose{0};
  void let_go(std::uint64_t blocks, bool for_good) {
    (for_good ? kept : loose).fetch_add(blocks, std::memory_order_relaxed);
    freed.fetch_add(blocks, std::memory_order_relaxed);
  }
  std::atomic<std::int64_t> inode_change{0};
  std::atomic<std::uint64_t> blob_bytes{0};        // of symlinks, extended attributes and tails, whatever they replace

 private:
  const std::uint64_t generation_;
  Mutex mutex_;
  std::vector<std::unique_ptr<InodeDelta>> inodes_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> records_{0}, bytes_{0}, places_{0}, item_bytes_{0};
  std::set<SegmentId> scattered_ GUARDED_BY(the_gate);
};

}  // namespace varve::changes
