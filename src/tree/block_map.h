// Changed blocks of one file: a sorted map from file block to where its newest content is. Two levels of sorted arrays:
// 24 bytes an entry, ~35 with slack, so that a million changes fit in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/invariant.h"
#include "base/types.h"
#include "log/payload.h"

namespace varve::changes {
struct PendingBlock;
}

namespace varve::tree {

// Where a block's content is: at an address of the device, still only in memory, or in a tail (changes::FileDelta::tails).
class BlockPlace {
 public:
  BlockPlace() = default;
  static BlockPlace at(BlockAddr address) { return BlockPlace(address.v & kAddressMask); }
  static BlockPlace pending(changes::PendingBlock* block) {
    return BlockPlace((reinterpret_cast<std::uint64_t>(block) & kAddressMask) | kPending);
  }
  static BlockPlace tail() { return BlockPlace(kTail); }

  bool is_pending() const { return word_ & kPending; }
  bool is_tail() const { return word_ & kTail; }
  BlockAddr address() const { return BlockAddr{word_ & kAddressMask}; }
  changes::PendingBlock* pending_block() const { return reinterpret_cast<changes::PendingBlock*>(word_ & kAddressMask); }

  std::uint8_t estimate() const { return static_cast<std::uint8_t>(word_ >> 48); }
  void set_estimate(std::uint8_t estimate) {
    word_ = (word_ & ~(0xFFULL << 48)) | static_cast<std::uint64_t>(estimate) << 48;
  }
  // Put here by a cleaner: content and clock are older than the delta.
  bool moved() const { return word_ & kMoved; }
  void set_moved(bool value) { word_ = value ? word_ | kMoved : word_ & ~kMoved; }

 private:
  static constexpr std::uint64_t kAddressMask = (1ULL << 48) - 1;
  static constexpr std::uint64_t kPending = 1ULL << 63;
  static constexpr std::uint64_t kMoved = 1ULL << 62;
  static constexpr std::uint64_t kTail = 1ULL << 61;
  explicit BlockPlace(std::uint64_t word) : word_(word) {}

  std::uint64_t word_ = 0;
};

struct BlockEntry {
  std::uint64_t block = 0;  // file block
  BlockPlace place;
  std::uint32_t crc = 0;
  std::uint32_t clock = 0;
};
static_assert(sizeof(BlockEntry) == 24);

// Not thread-safe. Pointers to entries are valid until the next insertion or removal.
class BlockMap {
 public:
  BlockEntry* find(std::uint64_t block);
  const BlockEntry* find(std::uint64_t block) const { return const_cast<BlockMap*>(this)->find(block); }
  // The entry of this block; a new one has an empty place.
  BlockEntry& insert(std::uint64_t block);
  // Removes entries in [from, to); calls gone(entry) for each before.
  template <class Gone>
  void erase_range(std::uint64_t from, std::uint64_t to, Gone&& gone);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t memory() const { return leaves_.size() * (sizeof(Leaf) + kLeafEntries * sizeof(BlockEntry)); }
  std::uint64_t end_block() const;  // one past the last entry's block; 0 when empty

  // Forward position, in block order.
  class Position {
   public:
    Position(const BlockMap& map, std::size_t leaf, std::size_t at) : map_(&map), leaf_(leaf), at_(at) {}
    bool valid() const { return leaf_ < map_->leaves_.size(); }
    const BlockEntry& operator*() const { return map_->leaves_[leaf_].entries[at_]; }
    const BlockEntry* operator->() const { return &**this; }
    void next() {
      if (++at_ >= map_->leaves_[leaf_].entries.size()) {
        ++leaf_;
        at_ = 0;
      }
    }

   private:
    const BlockMap* map_;
    std::size_t leaf_, at_;
  };
  Position lower_bound(std::uint64_t block) const;

 private:
  static constexpr std::size_t kLeafEntries = 128;
  struct Leaf {
    std::uint64_t first = 0;
    std::vector<BlockEntry> entries;  // sorted, never empty
  };
  std::size_t leaf_of(std::uint64_t block) const;

  std::vector<Leaf> leaves_;
  std::size_t size_ = 0;
};

template <class Gone>
void BlockMap::erase_range(std::uint64_t from, std::uint64_t to, Gone&& gone) {
  if (leaves_.empty() || from >= to) return;
  std::size_t leaf = leaf_of(from);
  const std::size_t first_leaf = leaf;
  for (; leaf < leaves_.size() && leaves_[leaf].first < to; ++leaf) {
    auto& entries = leaves_[leaf].entries;
    std::size_t keep = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (entries[i].block >= from && entries[i].block < to) {
        gone(entries[i]);
        INVARIANT(size_ > 0);
        --size_;
      } else {
        entries[keep++] = entries[i];
      }
    }
    entries.resize(keep);
    if (keep) leaves_[leaf].first = entries[0].block;
  }
  std::size_t keep = first_leaf;
  for (std::size_t i = first_leaf; i < leaves_.size(); ++i)
    if (!leaves_[i].entries.empty()) {
      if (keep != i) leaves_[keep] = std::move(leaves_[i]);
      ++keep;
    }
  leaves_.resize(keep);
  INVARIANT(leaves_.empty() == (size_ == 0));
}

}  // namespace varve::tree
