// Decoded units, immutable and shared, bounded in bytes: reading a unit part by part decodes it once.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/buffer.h"
#include "base/mutex.h"
#include "base/types.h"

namespace varve::blocks {

using UnitContent = std::shared_ptr<const AlignedBuffer>;

// Which unit: where its first block stands, and the checksums of all its stored blocks, as the extents have them. The place alone would not
// do, since other blocks may come to it.
struct UnitName {
  BlockAddr first;
  std::vector<std::uint32_t> crcs;

  bool operator==(const UnitName&) const = default;
};

// Thread-safe. Evicts what was used least recently. A caller that has a content keeps it.
class UnitCache {
 public:
  explicit UnitCache(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  UnitCache(const UnitCache&) = delete;
  UnitCache& operator=(const UnitCache&) = delete;

  UnitContent find(const UnitName& name);  // null if it is not there
  // What was decoded for `name`. One that is larger than the bound is not kept.
  UnitContent insert(UnitName name, AlignedBuffer content);
  // Another bound: what is too much goes at once.
  void bound(std::size_t bytes_max);

  std::size_t bytes() const;
  std::uint64_t hits() const;
  std::uint64_t misses() const;

 private:
  struct Entry {
    UnitName name;
    UnitContent content;
    std::size_t bytes = 0;
  };
  using Entries = std::list<Entry>;  // the one that was used last is the first

  void remove(Entries::iterator at, std::vector<UnitContent>& evicted) REQUIRES(mutex_);
  void shrink(std::vector<UnitContent>& evicted) REQUIRES(mutex_);

  mutable Mutex mutex_;
  std::size_t bytes_max_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
  Entries entries_ GUARDED_BY(mutex_);
  std::unordered_map<BlockAddr, Entries::iterator> by_place_ GUARDED_BY(mutex_);
  std::uint64_t hits_ GUARDED_BY(mutex_) = 0;
  std::uint64_t misses_ GUARDED_BY(mutex_) = 0;
};

}  // namespace varve::blocks
