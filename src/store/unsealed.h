// What waits for the next chunk: changed inodes, payload, and room for records that operations have been promised.
// Added to inside the gate; taken with the gate closed. The numbers may be asked by any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "log/gate.h"
#include "store/delta.h"

namespace varve::store {

class Unsealed {
 public:
  // Room for the records of one operation. False: the next chunk is full.
  bool reserve_records(std::size_t bytes) REQUIRES_SHARED(log::the_gate);
  void give_back_records(std::size_t bytes) REQUIRES_SHARED(log::the_gate);

  void add(InodeDelta& delta, std::uint64_t now_ns) REQUIRES_SHARED(log::the_gate);
  // Moves them out of `blocks` (StageBlock::data).
  template <class Blocks>
  void add_payload(Blocks&& blocks) REQUIRES_SHARED(log::the_gate) {
    payload_bytes_.fetch_add(std::uint64_t{blocks.size()} << kBlockShift, std::memory_order_relaxed);
    const Lock lock(mutex_);
    for (auto& staged : blocks) payload_.push_back(std::move(staged.data));
  }

  std::uint64_t payload_bytes() const { return payload_bytes_.load(std::memory_order_relaxed); }
  // When the oldest of it was acknowledged; 0: there is nothing.
  std::uint64_t since_ns() const { return since_ns_.load(); }
  bool any() const { return since_ns() != 0; }

  std::size_t reserved_records() const { return reserved_records_.load(std::memory_order_relaxed); }
  const std::vector<InodeDelta*>& deltas() const REQUIRES(log::the_gate) NO_THREAD_SAFETY_ANALYSIS { return deltas_; }
  std::vector<PendingPtr>& payload() REQUIRES(log::the_gate) NO_THREAD_SAFETY_ANALYSIS { return payload_; }
  // It is in a chunk now.
  void clear() REQUIRES(log::the_gate);
  // Of operations that were let in and then had to wait for something else.
  void forget_reservations() REQUIRES(log::the_gate) { reserved_records_ = 0; }

 private:
  Mutex mutex_;
  std::vector<InodeDelta*> deltas_ GUARDED_BY(mutex_);
  std::vector<PendingPtr> payload_ GUARDED_BY(mutex_);
  std::atomic<std::size_t> reserved_records_{0};
  std::atomic<std::uint64_t> payload_bytes_{0}, since_ns_{0};
};

}  // namespace varve::store
