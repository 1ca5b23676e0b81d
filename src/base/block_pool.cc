#include "base/block_pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <memory>

#include "base/invariant.h"

// The sanitizer is told what nobody may touch.
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace varve {

// Never destroyed: what other static objects keep may go later.
BlockPool& BlockPool::of_process() {
  static BlockPool& pool = *new BlockPool;
  return pool;
}

BlockPool::~BlockPool() { dispose_of(open_); }

void BlockPool::dispose_of(SlabList& slabs) {
  slabs.clear_and_dispose([](Slab* slab) {
    ASAN_UNPOISON_MEMORY_REGION(slab->memory.data(), slab->memory.size());
    delete slab;
  });
}

BlockPool::Block BlockPool::take() {
  std::unique_ptr<Slab> fresh;
  for (;;) {
    {
      const Lock lock(mutex_);
      if (fresh) add(*fresh.release());
      if (!open_.empty()) return take_of(open_.front());
    }
    // Without the lock: what helps where memory is lacking may need blocks.
    fresh = std::make_unique<Slab>(*this);
    ASAN_POISON_MEMORY_REGION(fresh->memory.data(), fresh->memory.size());
  }
}

void BlockPool::add(Slab& slab) {
  open_.push_back(slab);
  ++slabs_;
  ++unused_;
}

BlockPool::Block BlockPool::take_of(Slab& slab) {
  unused_ -= slab.free == kAllFree;
  const auto index = static_cast<std::size_t>(std::countr_zero(slab.free));
  slab.used |= slab.free & -slab.free;
  slab.free &= slab.free - 1;
  if (!slab.free) open_.erase(open_.iterator_to(slab));
  std::byte* const data = slab.memory.data() + index * kBlockSize;
  ASAN_UNPOISON_MEMORY_REGION(data, kBlockSize);
  return {slab, data};
}

// Unused slabs go back to the heap where they are more than half of those in use.
void BlockPool::give(Slab& slab, std::byte* data) {
  SlabList surplus;  // freed without the lock
  {
    const Lock lock(mutex_);
    const auto index = static_cast<std::size_t>(data - slab.memory.data()) / kBlockSize;
    MEMORY_INVARIANT(index < kBlocks && !(slab.free >> index & 1));
    ASAN_POISON_MEMORY_REGION(data, kBlockSize);
    if (!slab.free) open_.push_front(slab);
    slab.free |= std::uint64_t{1} << index;
    if (slab.free != kAllFree) return;
    open_.splice(open_.end(), open_, open_.iterator_to(slab));
    ++unused_;
    for (; unused_ > std::max(kFewUnused, (slabs_ - unused_) / 2); --unused_, --slabs_)
      surplus.splice(surplus.end(), open_, std::prev(open_.end()));
  }
  dispose_of(surplus);
}

// Slab by slab, so that no thread waits for long.
std::size_t BlockPool::trim() {
  std::size_t all = 0;
  for (;;) {
    const Lock lock(mutex_);
    const std::size_t bytes = trim_one();
    if (!bytes) return all;
    all += bytes;
  }
}

std::size_t BlockPool::trim_one() {
  for (Slab& slab : open_)
    if (idle(slab)) return trim(slab);
  return 0;
}

// A page of the kernel may have several blocks. Asked for a part of it, the kernel would take all, and with it what others have in it.
std::uint64_t BlockPool::idle(const Slab& slab) const {
  if (blocks_of_page_ == 1) return slab.free & slab.used;
  const std::size_t block = reinterpret_cast<std::uintptr_t>(slab.memory.data()) / kBlockSize;
  std::uint64_t blocks = 0;
  for (std::size_t first = round_up(block, blocks_of_page_) - block; first + blocks_of_page_ <= kBlocks; first += blocks_of_page_) {
    const std::uint64_t page = kAllFree >> (kBlocks - blocks_of_page_) << first;
    if ((slab.free & page) == page && (slab.used & page)) blocks |= page;
  }
  return blocks;
}

// In runs of blocks.
std::size_t BlockPool::trim(Slab& slab) {
  const std::uint64_t wanted = idle(slab);
  for (std::uint64_t left = wanted; left;) {
    const int first = std::countr_zero(left), count = std::countr_one(left >> first);
    std::byte* const run = slab.memory.data() + static_cast<std::size_t>(first) * kBlockSize;
    ::madvise(run, static_cast<std::size_t>(count) * kBlockSize, MADV_DONTNEED);
    left = count == 64 ? 0 : left & ~(((std::uint64_t{1} << count) - 1) << first);
  }
  slab.used &= ~wanted;
  return static_cast<std::size_t>(std::popcount(wanted)) * kBlockSize;
}

std::size_t BlockPool::bytes() const {
  const Lock lock(mutex_);
  return slabs_ * kBlocks * kBlockSize;
}

}  // namespace varve
