// One try of one operation: passes the gate, finds inodes, takes locks, asks for admission.
#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <span>
#include <utility>

#include <boost/container/small_vector.hpp>

#include "changes/inode.h"
#include "changes/staging.h"
#include "checkpoint/seals.h"
#include "device/faults.h"
#include "operation/background.h"
#include "operation/operation.h"
#include "operation/operations.h"
#include "operation/wait.h"
#include "space/demand.h"
#include "store/store.h"
#include "tree/tree_view.h"
#include "tree/trees.h"

namespace varve::operation {

// How many places of the inode file a small change changes, at most; and bytes of its records.
constexpr std::uint64_t kFewPlaces = 8;
constexpr std::size_t kFewRecordBytes = 512;

// Which block of which file is meant.
struct FileBlock {
  Ino ino;
  std::uint64_t block = 0;
};
using FileBlockOf = std::function<FileBlock(std::size_t index)>;

class SCOPED_CAPABILITY Attempt {
 public:
  Attempt(Operations& operations, Operation& operation) ACQUIRE_SHARED(the_gate);
  ~Attempt() RELEASE_GENERIC();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Tells the compiler what is true while an attempt lasts: what an operation asks it for, it asks for inside the gate.
  void inside() const ASSERT_SHARED_CAPABILITY(the_gate) {}
  Operations& operations() ASSERT_SHARED_CAPABILITY(the_gate) { return operations_; }
  store::Store& store() ASSERT_SHARED_CAPABILITY(the_gate) { return store_; }
  changes::Staging& staging() ASSERT_SHARED_CAPABILITY(the_gate) { return store_.staging(); }
  Operation& operation() { return operation_; }
  Wait& wait() { return operation_.wait(); }
  OperationSource& source() { return source_; }
  const tree::TreeView& view() const ASSERT_SHARED_CAPABILITY(the_gate) {
    inside();
    return shown_ ? *shown_ : store_.trees().view();
  }

  bool shows_snapshot() const { return shown_.has_value(); }

  // The inode with its attributes; Errc::stale if there is none. Takes its lock for a moment.
  Result<changes::InodePtr> inode(Ino ino) { return find(ino, Wanted::any); }
  Result<changes::InodePtr> directory(Ino ino) { return find(ino, Wanted::directory); }  // Errc::not_directory

  // May the operation change something of this size? Errc::read_only, no_space, host_full; would_block: wait, or seal first.
  // no_space also if one chunk cannot hold its records. It waits while too much is in flight, or no segment is there for its payload.
  // waits_for_memory: false for the thread that makes the checkpoints, which cannot wait for one to free memory.
  Status admit(const space::Demand& demand, bool waits_for_memory = true);

  // Blocks of files that stand one behind the other on the device: the bytes when they have been read, else would_block. They are still to
  // be verified. `target`: where to read to (aligned), or null for a buffer of the operation's own. What fails together is read again, each
  // block by itself. Errc::io for one that fails then, too: it is noted as an error of the filesystem, and `whose` says whose it is.
  Result<std::span<const std::byte>> fetch(std::span<const changes::MappedBlock> blocks, const FileBlockOf& whose,
                                           std::byte* target = nullptr);

  Timestamp now() { return store_.options().clock->now(); }

 private:
  std::optional<tree::TreeView> view_of_snapshot() const;
  enum class Wanted : std::uint8_t { any, directory };
  static Status check(const changes::Inode& inode, Wanted wanted) REQUIRES_SHARED(inode.mutex);
  Result<changes::InodePtr> find(Ino ino, Wanted wanted);
  Result<changes::InodePtr> find_in_snapshot(Ino ino, Wanted wanted);
  Status wait_for_count(const space::Demand& demand) REQUIRES_SHARED(the_gate);  // of what the charge cannot take now
  bool fits(const space::Demand& demand) REQUIRES_SHARED(the_gate);
  bool may_gain_from_automatic(const space::Demand& demand) REQUIRES_SHARED(the_gate);
  void count_fruitless_rounds();
  Result<std::span<const std::byte>> fetch_singly(DataRead& together, std::span<const changes::MappedBlock> blocks,
                                                  const FileBlockOf& whose);
  Error unreadable(DataRead& read, FileBlock block);

  Operations& operations_;
  store::Store& store_;
  Operation& operation_;
  Gate::Pass pass_;
  const std::optional<tree::TreeView> shown_;  // none: the newest state
  OperationSource source_;
  boost::container::small_vector<space::Demand, 1> granted_;  // withdrawn before the gate is left
};

// Exclusive locks of several inodes, taken in ascending order, duplicates once. Null ones are left out.
class SCOPED_CAPABILITY InodeLocks {
 public:
  InodeLocks(const changes::InodePtr& a, const changes::InodePtr& b) ACQUIRE(a->mutex, b->mutex) : InodeLocks({a.get(), b.get()}) {}
  InodeLocks(const changes::InodePtr& a, const changes::InodePtr& b, const changes::InodePtr& c, const changes::InodePtr& d)
      ACQUIRE(a->mutex, b->mutex, c->mutex, d->mutex)
      : InodeLocks({a.get(), b.get(), c.get(), d.get()}) {}
  ~InodeLocks() RELEASE();
  InodeLocks(const InodeLocks&) = delete;
  InodeLocks& operator=(const InodeLocks&) = delete;

 private:
  explicit InodeLocks(std::initializer_list<changes::Inode*> inodes);

  boost::container::small_vector<changes::Inode*, 4> inodes_;
};

template <class F>
auto Operations::attempt(Operation& operation, F&& f) {
  for (bool counted = false;;) {
    auto result = [&] {
      Attempt attempt(*this, operation);
      return f(attempt);
    }();
    store().faults().settle_alarm();
    Wait& wait = operation.wait();
    if (const Retry retry = std::exchange(wait.retry, Retry::no); retry != Retry::no) {
      if (retry == Retry::at_once) continue;
      // First by counting what is promised to others; if that is not enough, by a seal.
      const Status made = store().seals().make_room_for_records(std::exchange(counted, true), operation.reactor());
      if (!made.ok()) return decltype(result)(made.error());
      continue;
    }
    if (result.ok()) background_->after_operation(operation.reactor());
    return result;
  }
}

}  // namespace varve::operation
