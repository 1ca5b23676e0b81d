// Bytes on their way to the device, shared between the operation that made them, the write, and readers that come meanwhile.
#pragma once

#include <array>
#include <atomic>
#include <unordered_map>

#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <boost/smart_ptr/intrusive_ref_counter.hpp>

#include "base/block_pool.h"
#include "base/buffer.h"
#include "base/invariant.h"
#include "base/mutex.h"
#include "base/types.h"
#include "log/parts_written.h"

namespace varve::log {

// Keeps the memory of one or more blocks, until none of them is wanted.
class PayloadBuffer : public boost::intrusive_ref_counter<PayloadBuffer, boost::thread_safe_counter> {
 public:
  explicit PayloadBuffer(std::uint32_t more_blocks) : beside(more_blocks) {}
  virtual ~PayloadBuffer() = default;

  const std::uint32_t beside;  // blocks of memory that it takes beside its own: to be aligned, or for the head of its message

  // Of the list in which its blocks wait for a chunk, and changed with the lock of that.
  struct {
    std::uint32_t waiting = 0;          // blocks that are still wanted
    std::uint32_t held = 0, stream = 0;  // that have come to it at all
  } listed;
};
using PayloadBufferPtr = boost::intrusive_ptr<PayloadBuffer>;

class OwnPayloadBuffer : public PayloadBuffer {
 public:
  explicit OwnPayloadBuffer(std::size_t blocks) : PayloadBuffer(blocks == 1 ? 0 : 1) {
    if (blocks == 1) single_ = BlockPool::of_process().take();
    else several_ = AlignedBuffer(blocks * kBlockSize);
  }
  std::byte* block(std::size_t index) { return (single_.data() ? single_.data() : several_.data()) + index * kBlockSize; }

 private:
  BlockPool::Block single_;
  AlignedBuffer several_;
};

// One block of payload. Its bytes never change between the CRC and the completion of its write (H47).
class PayloadBlock : public boost::intrusive_ref_counter<PayloadBlock, boost::thread_safe_counter> {
 public:
  PayloadBlock(PayloadBufferPtr owner, std::byte* bytes) : buffer(std::move(owner)), data(bytes) {}
  virtual ~PayloadBlock() = default;

  PayloadBufferPtr buffer;
  std::byte* data;
  std::uint32_t crc = 0;
  bool is_part = false;  // only a part of it was written: the next append may want it (PartsWritten)
};
using PayloadPtr = boost::intrusive_ptr<PayloadBlock>;

// Blocks whose write has been started and not completed, by address: readers take their bytes from here. And those few that are written
// and will be wanted by the next append. Thread-safe.
class InFlightTable {
 public:
  void add(BlockAddr address, PayloadPtr block) {
    Shard& shard = shard_of(address);
    const Lock lock(shard.mutex);
    INVARIANT(block != nullptr);
    const bool fresh = shard.blocks.insert_or_assign(address.v, std::move(block)).second;
    INVARIANT(fresh);  // two writes of one block must not be under way
    count_.fetch_add(1, std::memory_order_release);
  }
  void remove(BlockAddr address) {
    Shard& shard = shard_of(address);
    const Lock lock(shard.mutex);
    const std::size_t gone = shard.blocks.erase(address.v);
    INVARIANT(gone == 1);
    count_.fetch_sub(gone, std::memory_order_release);
  }
  PayloadPtr find(BlockAddr address) const {
    if (!count_.load(std::memory_order_acquire)) return nullptr;
    const Shard& shard = shard_of(address);
    const Lock lock(shard.mutex);
    auto found = shard.blocks.find(address.v);
    return found == shard.blocks.end() ? nullptr : found->second;
  }
  // Before remove(), which leaves a moment when it is nowhere else.
  void remember_part(BlockAddr address, const PayloadBlock& block) {
    if (block.is_part) parts_.add(address, block.crc, {block.data, kBlockSize});
  }
  bool find_part(BlockAddr address, std::uint32_t crc, std::span<std::byte> out) const { return parts_.find(address, crc, out); }
  std::uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  struct Shard {
    mutable Mutex mutex;
    std::unordered_map<std::uint64_t, PayloadPtr> blocks GUARDED_BY(mutex);
  };
  Shard& shard_of(BlockAddr a) { return shards_[(a.v >> 4) % shards_.size()]; }
  const Shard& shard_of(BlockAddr a) const { return shards_[(a.v >> 4) % shards_.size()]; }

  std::array<Shard, 16> shards_;
  std::atomic<std::uint64_t> count_{0};
  PartsWritten parts_;
};

}  // namespace varve::log
