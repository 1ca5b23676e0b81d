// Page-aligned buffers for messages and replies, kept for reuse.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/page_size.h"
#include "base/types.h"
#include "fuse/transport/large_memory.h"
#include "log/payload.h"

namespace varve::fuse {

// Each serving thread has one; buffers may come back from any thread. Only touched pages cost memory; a few buffers of
// each size stay mapped for reuse, last in first out, so that the hot ones are in the CPU's caches.
class BufferPool {
 public:
  static constexpr std::size_t kPage = kBlockSize;  // that payload is aligned to; the system's own may be larger
  // The largest takes a message with 1 MiB of payload behind a page for what stands before it.
  static constexpr std::array<std::size_t, 4> kSizes = {kPage, 32 * kPage, 64 * kPage, 257 * kPage};
  static constexpr std::size_t kMaxBytes = kSizes.back();

  // A buffer on loan; goes back to its pool when this ends. Must not outlive the pool.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), data_(std::exchange(other.data_, nullptr)), shelf_(other.shelf_) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(data_, other.data_);
      std::swap(shelf_, other.shelf_);
      return *this;
    }
    ~Lease() { reset(); }

    void reset() {
      if (data_) pool_->give_back(std::exchange(data_, nullptr), shelf_);
    }
    std::byte* data() const { return data_; }
    std::size_t size() const { return data_ ? kSizes[shelf_] : 0; }
    explicit operator bool() const { return data_ != nullptr; }

   private:
    friend class BufferPool;  // makes them
    Lease(BufferPool* pool, std::byte* data, unsigned shelf) : pool_(pool), data_(data), shelf_(shelf) {}

    BufferPool* pool_ = nullptr;
    std::byte* data_ = nullptr;
    unsigned shelf_ = 0;
  };

  // `keep_bytes`: of the largest size that stay mapped; of the others as many in all. Buffers of the largest size come from
  // `part` of `memory` first.
  // `page_bytes`: the kernel gives memory in pages of so many.
  explicit BufferPool(std::size_t keep_bytes = 4u << 20, std::shared_ptr<LargeMemory> memory = nullptr,
                      std::span<std::byte> part = {}, std::size_t page_bytes = kernel_page_bytes());
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  Lease take(std::size_t bytes);      // at most kMaxBytes
  Lease try_take(std::size_t bytes);  // the same; empty where memory is lacking
  // What a buffer for so many really takes.
  static std::size_t size_for(std::size_t bytes, std::size_t page_bytes = kernel_page_bytes()) {
    for (const std::size_t size : kSizes)
      if (bytes <= size) return round_up(size, page_bytes);
    return bytes;
  }
  std::size_t leased_bytes() const { return leased_bytes_.load(std::memory_order_relaxed); }
  // Calls `call` once, by any thread, as soon as no more than `bytes` are leased. False: that is so already.
  bool when_below(std::size_t bytes, std::function<void()> call);
  void forget_call();
  // Another `keep_bytes`: free buffers beyond that go now. Of `part`, buffers for twice as much are used, and the others give their memory
  // back, unless it is locked. Any thread.
  void keep(std::size_t bytes);

 private:
  using Counts = std::array<std::size_t, kSizes.size()>;

  Counts counts_for(std::size_t keep_bytes) const;
  void give_back(std::byte* data, unsigned shelf);
  bool retire(std::byte* large) REQUIRES(mutex_);
  std::size_t used_of_part() const REQUIRES(mutex_) { return part_.size() / kMaxBytes - unused_.size(); }
  bool is_large(const std::byte* data) const { return data >= part_.data() && data < part_.data() + part_.size(); }

  Counts taken_;  // by the buffers of a shelf, in memory
  const std::shared_ptr<LargeMemory> memory_;
  const std::span<std::byte> part_;
  std::atomic<std::size_t> leased_bytes_{0};
  Mutex mutex_{LockRank::any};
  // Under mutex_:
  Counts kept_;
  std::size_t large_kept_;  // of part_
  std::array<std::vector<std::byte*>, kSizes.size()> shelves_;
  std::vector<std::byte*> large_ GUARDED_BY(mutex_), unused_ GUARDED_BY(mutex_);  // free ones of part_; those that are too many
  std::size_t call_below_ GUARDED_BY(mutex_) = 0;
  std::function<void()> call_ GUARDED_BY(mutex_);
};

using Lease = BufferPool::Lease;

// A received message whose data the filesystem goes on using, so that they are not copied.
class LeasedPayload : public log::PayloadBuffer {
 public:
  LeasedPayload(std::shared_ptr<BufferPool> pool, Lease lease) : log::PayloadBuffer(1), pool_(std::move(pool)), lease_(std::move(lease)) {}

 private:
  std::shared_ptr<BufferPool> pool_;  // outlives the lease
  Lease lease_;
};

}  // namespace varve::fuse
