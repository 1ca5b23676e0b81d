#include "fuse/transport/buffer_pool.h"

#include <sys/mman.h>

#include "base/invariant.h"
#include "base/memory_reserve.h"

namespace varve::fuse {

namespace {

// This is about the pages of the kernel that a buffer has to itself: neighbours share the others with it.
bool advise(std::byte* data, int advice) {
  const std::size_t page = kernel_page_bytes(), before = (page - reinterpret_cast<std::uintptr_t>(data) % page) % page;
  return ::madvise(data + before, (BufferPool::kMaxBytes - before) / page * page, advice) == 0;
}

}  // namespace

BufferPool::BufferPool(std::size_t keep_bytes, std::shared_ptr<LargeMemory> memory, std::span<std::byte> part, std::size_t page_bytes)
    : memory_(std::move(memory)), part_(part) {
  for (unsigned shelf = 0; shelf < kSizes.size(); ++shelf) taken_[shelf] = round_up(kSizes[shelf], page_bytes);
  kept_ = counts_for(keep_bytes);
  // Giving back needs no memory.
  for (unsigned shelf = 0; shelf < shelves_.size(); ++shelf) shelves_[shelf].reserve(kept_[shelf]);
  large_kept_ = part.size() / kMaxBytes;
  for (std::size_t i = 0; i < large_kept_; ++i) large_.push_back(part.data() + i * kMaxBytes);
  unused_.reserve(large_kept_);
}

BufferPool::Counts BufferPool::counts_for(std::size_t keep_bytes) const {
  return {64 * kPage / taken_[0], keep_bytes / 2 / taken_[1], keep_bytes / 2 / taken_[2], keep_bytes / taken_[3]};
}

void BufferPool::keep(std::size_t bytes) {
  const Lock lock(mutex_);
  kept_ = counts_for(bytes);
  large_kept_ = 2 * bytes / kMaxBytes;
  for (unsigned shelf = 0; shelf < shelves_.size(); ++shelf) {
    auto& free = shelves_[shelf];
    for (; free.size() > kept_[shelf]; free.pop_back()) ::munmap(free.back(), taken_[shelf]);
    free.reserve(kept_[shelf]);
  }
  for (; !large_.empty() && used_of_part() > large_kept_ && retire(large_.back()); large_.pop_back()) {
  }
  for (; !unused_.empty() && used_of_part() < large_kept_; unused_.pop_back()) {
    advise(unused_.back(), MADV_HUGEPAGE);
    large_.push_back(unused_.back());
  }
}

// False: its memory is locked (mlock) and cannot be given back, so it stays in use.
bool BufferPool::retire(std::byte* large) {
  advise(large, MADV_NOHUGEPAGE);  // or the kernel would soon fill the gap, to have a huge page again
  if (!advise(large, MADV_DONTNEED)) {
    advise(large, MADV_HUGEPAGE);
    return false;
  }
  unused_.push_back(large);
  return true;
}

BufferPool::~BufferPool() {
  for (unsigned shelf = 0; shelf < shelves_.size(); ++shelf)
    for (std::byte* data : shelves_[shelf]) ::munmap(data, taken_[shelf]);
}

BufferPool::Lease BufferPool::take(std::size_t bytes) {
  for (;;) {
    if (Lease lease = try_take(bytes)) return lease;
    meet_lack_of_memory();
  }
}

BufferPool::Lease BufferPool::try_take(std::size_t bytes) {
  MEMORY_INVARIANT(bytes <= kMaxBytes);
  unsigned shelf = 0;
  while (kSizes[shelf] < bytes) ++shelf;
  std::byte* data = nullptr;
  {
    const Lock lock(mutex_);
    auto& free = kSizes[shelf] == kMaxBytes && !large_.empty() ? large_ : shelves_[shelf];
    if (!free.empty()) {
      data = free.back();
      free.pop_back();
    }
  }
  if (!data) {
    void* mapped = ::mmap(nullptr, taken_[shelf], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) return {};
    data = static_cast<std::byte*>(mapped);
  }
  leased_bytes_.fetch_add(taken_[shelf], std::memory_order_relaxed);
  return {this, data, shelf};
}

void BufferPool::give_back(std::byte* data, unsigned shelf) {
  bool keep = false;
  {
    const Lock lock(mutex_);
    MEMORY_INVARIANT(data != nullptr && shelf < shelves_.size());
    keep = is_large(data) || shelves_[shelf].size() < kept_[shelf];
    const bool retired = is_large(data) && used_of_part() > large_kept_ && retire(data);
    if (keep && !retired) (is_large(data) ? large_ : shelves_[shelf]).push_back(data);
    const std::size_t before = leased_bytes_.fetch_sub(taken_[shelf], std::memory_order_relaxed);
    INVARIANT(before >= taken_[shelf]);
    // Under the lock: the thread that takes the call back may destroy what it uses.
    if (call_ && leased_bytes() <= call_below_) std::exchange(call_, nullptr)();
  }
  if (!keep) ::munmap(data, taken_[shelf]);
}

bool BufferPool::when_below(std::size_t bytes, std::function<void()> call) {
  const Lock lock(mutex_);
  if (leased_bytes() <= bytes) return false;
  call_below_ = bytes;
  call_ = std::move(call);
  return true;
}

void BufferPool::forget_call() {
  const Lock lock(mutex_);
  call_ = nullptr;
}

}  // namespace varve::fuse
