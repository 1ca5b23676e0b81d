// Memory for single blocks, aligned for direct I/O: sixty-four of them in one piece. The heap takes two blocks for each that it aligns.
#pragma once

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/buffer.h"
#include "base/mutex.h"
#include "base/page_size.h"
#include "base/types.h"

namespace varve {

// Thread-safe.
class BlockPool {
  struct Slab;

 public:
  // Owns one block, or none. Contents start undefined.
  class Block {
   public:
    Block() = default;
    Block(Slab& slab, std::byte* data) : slab_(&slab), data_(data) {}  // the pool's
    Block(Block&& other) noexcept { *this = std::move(other); }
    Block& operator=(Block&& other) noexcept {
      std::swap(slab_, other.slab_);
      std::swap(data_, other.data_);
      return *this;
    }
    ~Block() {
      if (slab_) slab_->pool.give(*slab_, data_);
    }
    std::byte* data() const { return data_; }

   private:
    Slab* slab_ = nullptr;
    std::byte* data_ = nullptr;
  };

  // `page_bytes`: what the kernel takes back at once, or several of it.
  explicit BlockPool(std::size_t page_bytes = kernel_page_bytes()) : blocks_of_page_(std::max<std::size_t>(page_bytes / kBlockSize, 1)) {}
  ~BlockPool();  // after all of its blocks
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;

  static BlockPool& of_process();

  Block take();
  std::size_t bytes() const;  // that it has of the heap
  // Free blocks give their memory back to the kernel, until they are taken again: those that share no page with one in use. How many
  // bytes those were.
  std::size_t trim();

 private:
  static constexpr std::size_t kBlocks = 64;
  static constexpr std::uint64_t kAllFree = ~std::uint64_t{0};
  static constexpr std::size_t kFewUnused = 16;  // slabs that are kept in any case: 4 MiB

  struct Slab : boost::intrusive::list_base_hook<> {
    explicit Slab(BlockPool& owner) : pool(owner), memory(kBlocks * kBlockSize) {}

    BlockPool& pool;
    AlignedBuffer memory;
    std::uint64_t free = kAllFree;  // a bit for each block
    std::uint64_t used = 0;         // those that may have memory of the kernel
  };

  using SlabList = boost::intrusive::list<Slab>;

  void add(Slab& slab) REQUIRES(mutex_);
  Block take_of(Slab& slab) REQUIRES(mutex_);
  void give(Slab& slab, std::byte* data);
  std::size_t trim_one() REQUIRES(mutex_);  // 0: there is nothing to give back any more
  std::uint64_t idle(const Slab& slab) const REQUIRES(mutex_);  // blocks of pages that are free, and have memory
  std::size_t trim(Slab& slab) REQUIRES(mutex_);
  static void dispose_of(SlabList& slabs);

  const std::size_t blocks_of_page_;
  mutable Mutex mutex_{LockRank::any};
  SlabList open_ GUARDED_BY(mutex_);  // those with free blocks; unused ones are at the end
  std::size_t slabs_ GUARDED_BY(mutex_) = 0, unused_ GUARDED_BY(mutex_) = 0;
};

}  // namespace varve
