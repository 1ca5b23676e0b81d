#include "blocks/unit_cache.h"

#include <utility>

#include "base/invariant.h"

namespace varve::blocks {

UnitContent UnitCache::find(const UnitName& name) {
  const Lock lock(mutex_);
  const auto at = by_place_.find(name.first);
  if (at == by_place_.end() || at->second->name != name) {
    ++misses_;
    return nullptr;
  }
  ++hits_;
  entries_.splice(entries_.begin(), entries_, at->second);
  return at->second->content;
}

UnitContent UnitCache::insert(UnitName name, AlignedBuffer content) {
  // With list, table and allocator; what is freed is freed outside the lock.
  const std::size_t bytes = content.size() + name.crcs.capacity() * sizeof(std::uint32_t) + sizeof(Entry) + 8 * sizeof(void*);
  UnitContent kept = std::make_shared<const AlignedBuffer>(std::move(content));
  std::vector<UnitContent> evicted;
  const Lock lock(mutex_);
  if (const auto former = by_place_.find(name.first); former != by_place_.end()) remove(former->second, evicted);
  if (bytes > bytes_max_) return kept;
  const BlockAddr place = name.first;
  entries_.push_front({std::move(name), kept, bytes});
  by_place_.emplace(place, entries_.begin());
  bytes_ += bytes;
  shrink(evicted);
  return kept;
}

void UnitCache::bound(std::size_t bytes_max) {
  std::vector<UnitContent> evicted;
  const Lock lock(mutex_);
  bytes_max_ = bytes_max;
  shrink(evicted);
}

std::size_t UnitCache::bytes() const {
  const Lock lock(mutex_);
  return bytes_;
}

std::uint64_t UnitCache::hits() const {
  const Lock lock(mutex_);
  return hits_;
}

std::uint64_t UnitCache::misses() const {
  const Lock lock(mutex_);
  return misses_;
}

void UnitCache::remove(Entries::iterator at, std::vector<UnitContent>& evicted) {
  INVARIANT(bytes_ >= at->bytes);
  bytes_ -= at->bytes;
  evicted.push_back(std::move(at->content));
  by_place_.erase(at->name.first);
  entries_.erase(at);
}

void UnitCache::shrink(std::vector<UnitContent>& evicted) {
  INVARIANT(entries_.size() == by_place_.size());
  while (bytes_ > bytes_max_ && !entries_.empty()) remove(std::prev(entries_.end()), evicted);
}

}  // namespace varve::blocks
