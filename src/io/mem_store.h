// Sparse array of blocks in memory, shared copy-on-write: copying a store copies one pointer per chunk of blocks.
//
// Not thread-safe; different copies may be used by different threads. Unwritten blocks read as zeros.
#pragma once

#include <array>
#include <atomic>
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/types.h"

namespace varve::io {

template <class T>
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) {}
  RefCounted& operator=(const RefCounted&) { return *this; }

  // True when only the caller's pointer is left, so that nobody else can see a change.
  bool unique() const { return references_.load(std::memory_order_acquire) == 1; }

  friend void intrusive_ptr_add_ref(const T* p) { p->references_.fetch_add(1, std::memory_order_relaxed); }
  friend void intrusive_ptr_release(const T* p) {
    if (p->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p;
  }

 private:
  mutable std::atomic<std::uint32_t> references_{0};
};

class MemStore {
 public:
  struct Block : RefCounted<Block> {
    std::array<std::byte, kBlockSize> bytes;
  };
  using BlockPtr = boost::intrusive_ptr<Block>;  // null: a block of zeros

  explicit MemStore(std::uint64_t blocks);

  std::uint64_t blocks() const { return blocks_; }
  void resize(std::uint64_t blocks);  // what goes is forgotten, what comes is zeros

  // Any byte range inside the store.
  void read(std::uint64_t offset, std::span<std::byte> out) const;
  void write(std::uint64_t offset, std::span<const std::byte> data);

  // Whole blocks by reference. A block handed in or out must not be changed by the caller afterwards.
  BlockPtr block(std::uint64_t index) const;
  void set_block(std::uint64_t index, BlockPtr block);
  void clear(std::uint64_t first, std::uint64_t count);  // blocks: zeros, memory released

  static BlockPtr make_block(std::span<const std::byte, kBlockSize> data);

 private:
  static constexpr std::size_t kChunkBlocks = 128;
  struct Chunk : RefCounted<Chunk> {
    std::array<BlockPtr, kChunkBlocks> blocks;
  };
  using ChunkPtr = boost::intrusive_ptr<Chunk>;

  BlockPtr& own_slot(std::uint64_t index);
  Block& own_block(std::uint64_t index, bool keep_contents);

  std::uint64_t blocks_;
  std::vector<ChunkPtr> chunks_;
};

}  // namespace varve::io
