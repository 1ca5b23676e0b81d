// What waits for the next chunk: changed inodes, payload, and room for records that operations have been promised.
// Added to inside the gate; taken with the gate closed. The numbers may be asked by any thread.
//
// What is not wanted any more before its chunk has come costs nothing from then on: no memory, no room, no record.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "base/gate.h"
#include "base/mutex.h"
#include "changes/delta.h"

namespace varve::changes {

class Unsealed {
 public:
  // Of a change. times: nothing but those of a file, which the kernel has kept and sends before a sync, or that of a read; known_times: of
  // writes that have set them already.
  enum class Kind : std::uint8_t { any, times, known_times };

  // `most_record_bytes`: of a chunk (format::most_record_bytes).
  explicit Unsealed(std::size_t most_record_bytes) : most_record_bytes_(most_record_bytes) {}

  // Room for the records of one operation. False: the next chunk is full.
  bool reserve_records(std::size_t bytes) REQUIRES_SHARED(the_gate);
  void give_back_records(std::size_t bytes) REQUIRES_SHARED(the_gate);
  // Is there nothing that fdatasync, or fsync, has to keep?
  void note_kind(Kind kind) REQUIRES_SHARED(the_gate) {
    if (kind == Kind::any) has_more_than_times_.store(true, std::memory_order_relaxed);
    if (kind != Kind::known_times) has_news_.store(true, std::memory_order_relaxed);
  }
  bool has_only_times() const REQUIRES_SHARED(the_gate) { return !has_more_than_times_.load(std::memory_order_relaxed); }
  bool has_only_known_times() const REQUIRES_SHARED(the_gate) { return !has_news_.load(std::memory_order_relaxed); }

  void add(InodeDelta& delta, std::uint64_t now_ns) REQUIRES_SHARED(the_gate);
  // Moves them out of `blocks` (StageBlock::data).
  template <class Blocks>
  void add_payload(Blocks&& blocks) REQUIRES_SHARED(the_gate) {
    const Lock lock(mutex_);
    for (auto& staged : blocks) {
      count(*staged.data);
      payload_.push_back(std::move(staged.data));
    }
    forget_dropped();
  }
  // It was overwritten or cleared. Its bytes must not be looked at any more, and the block may go with the next call.
  void drop_payload(PendingBlock& block) REQUIRES_SHARED(the_gate);

  // It is in a chunk as a tail that is too long for the trees, and stays pending until the next checkpoint.
  void keep_logged(PendingPtr block) REQUIRES(the_gate);
  // Those wait for the next chunk again, now as blocks.
  void give_blocks_to_logged() REQUIRES(the_gate);
  std::uint64_t logged() const { return logged_count_.load(); }  // blocks that they will take
  static constexpr std::uint64_t kMostLogged = 64, kLoggedRecordBytes = 40;

  // Of what is wanted.
  std::uint64_t payload_bytes() const { return payload_bytes_.load(std::memory_order_relaxed); }
  // Memory that it keeps: a buffer goes when nothing of it is wanted any more, and may cost a block more (PayloadBuffer::beside).
  std::uint64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }
  // Of its blocks, what stands behind the first MiB of its file. It comes in long rows and hardly ever dies young, so
  // there is nothing to be won by waiting. And it is kept in messages, which others wait for.
  std::uint64_t stream_bytes() const { return stream_bytes_.load(std::memory_order_relaxed); }
  static constexpr std::uint64_t kYoungBlocks = 256;  // of a file, at its begin
  // When the oldest of it was acknowledged; 0: there is nothing.
  std::uint64_t since_ns() const { return since_ns_.load(); }
  bool any() const { return since_ns() != 0; }

  std::size_t most_record_bytes() const { return most_record_bytes_; }
  std::size_t reserved_records() const { return reserved_records_.load(std::memory_order_relaxed); }
  // Without mutex_: with the gate closed nothing is added.
  const std::vector<InodeDelta*>& deltas() const REQUIRES(the_gate) NO_THREAD_SAFETY_ANALYSIS { return deltas_; }
  std::vector<PendingPtr>& payload() REQUIRES(the_gate) NO_THREAD_SAFETY_ANALYSIS { return payload_; }  // the same
  // It is in a chunk now.
  void clear() REQUIRES(the_gate);
  // Of operations that were let in and then had to wait for something else.
  void forget_reservations() REQUIRES(the_gate) { reserved_records_ = for_logged(); }
  // Inodes that came and went.
  void forget_vanished() REQUIRES(the_gate);
  // What has been promised is staged now, and so much is enough for it.
  void settle_records(std::size_t bytes) REQUIRES(the_gate);

 private:
  std::size_t for_logged() const { return logged() * kLoggedRecordBytes; }  // bytes of records
  void count(const PendingBlock& block) REQUIRES(mutex_);
  void forget_dropped() REQUIRES(mutex_);

  const std::size_t most_record_bytes_;
  Mutex mutex_{LockRank::unsealed};
  std::vector<InodeDelta*> deltas_ GUARDED_BY(mutex_);
  std::vector<PendingPtr> payload_ GUARDED_BY(mutex_);
  std::size_t dropped_ GUARDED_BY(mutex_) = 0;  // of payload_
  std::vector<PendingPtr> logged_ GUARDED_BY(mutex_);
  std::atomic<std::uint64_t> logged_count_{0};  // of logged_
  std::atomic<bool> has_more_than_times_{false}, has_news_{false};
  std::atomic<std::size_t> reserved_records_{0};
  std::atomic<std::uint64_t> payload_bytes_{0}, held_bytes_{0}, stream_bytes_{0}, since_ns_{0};
};

}  // namespace varve::changes
