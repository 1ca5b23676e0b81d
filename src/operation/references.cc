#include "operation/references.h"

#include <algorithm>
#include <utility>

#include "base/invariant.h"

namespace varve::operation {

namespace {

constexpr std::size_t kLeastSlots = 16;

// Grown by half at 4/5 full and shrunk by a third below half: 10 to 16 bytes an inode.
bool too_full(std::size_t used, std::size_t slots) { return used * 5 > slots * 4; }
bool too_empty(std::size_t used, std::size_t slots) { return slots > kLeastSlots && used * 2 < slots; }

}  // namespace

// Spread over the slots by the upper half of a product, so that their number need not be a power of two.
std::size_t References::Shard::home_of(std::uint64_t ino) const {
  const std::uint64_t hash = (ino * 0x9E3779B97F4A7C15ULL) >> 32;
  return static_cast<std::size_t>((hash * slots_.size()) >> 32);
}

std::size_t References::Shard::place_of(std::uint64_t ino) const {
  std::size_t at = home_of(ino);
  while (!slots_[at].empty() && slots_[at].ino() != ino) at = after(at);
  return at;
}

void References::Shard::resize(std::size_t slots) {
  const std::vector<Slot> former = std::exchange(slots_, std::vector<Slot>(slots));
  for (const Slot& slot : former)
    if (!slot.empty()) slots_[place_of(slot.ino())] = slot;
}

void References::Shard::erase(std::size_t at) {
  std::size_t hole = at;
  for (std::size_t next = after(at); !slots_[next].empty(); next = after(next)) {
    const std::size_t home = home_of(slots_[next].ino());
    if (distance(home, next) < distance(hole, next)) continue;  // would move before its home
    slots_[hole] = slots_[next];
    hole = next;
  }
  slots_[hole] = {};
  INVARIANT(used_ > 0);
  --used_;
}

std::uint64_t References::Shard::count(std::uint64_t ino) const {
  if (!wide_.empty())
    if (const auto found = wide_.find(ino); found != wide_.end()) return found->second;
  return slots_.empty() || ino > Slot::kMaxIno ? 0 : slots_[place_of(ino)].count();
}

void References::Shard::put(std::uint64_t ino, std::uint64_t count) {
  if (slots_.empty() || too_full(used_ + 1, slots_.size())) resize(std::max(kLeastSlots, slots_.size() / 2 * 3));
  INVARIANT(used_ < slots_.size());
  Slot& slot = slots_[place_of(ino)];
  used_ += slot.empty();
  slot = {ino, count};
}

void References::Shard::remove(std::uint64_t ino) {
  if (slots_.empty()) return;
  const std::size_t at = place_of(ino);
  if (slots_[at].empty()) return;
  erase(at);
  if (too_empty(used_, slots_.size())) resize(std::max(kLeastSlots, slots_.size() / 3 * 2));
}

void References::Shard::set(std::uint64_t ino, std::uint64_t count) {
  const bool narrow = ino <= Slot::kMaxIno && count <= Slot::kMaxCount;
  if (narrow || count == 0)
    wide_.erase(ino);
  else
    wide_[ino] = count;
  if (narrow && count)
    put(ino, count);
  else if (ino <= Slot::kMaxIno)
    remove(ino);
}

void References::Shard::append_to(std::vector<Ino>& all) const {
  for (const Slot& slot : slots_)
    if (!slot.empty()) all.push_back(Ino{slot.ino()});
  for (const auto& [ino, count] : wide_) all.push_back(Ino{ino});
}

void References::add(Ino ino, std::uint64_t count) {
  if (!are_counted_) return;
  Shard& shard = shard_of(ino);
  const Lock lock(shard.mutex);
  shard.set(ino.v, shard.count(ino.v) + count);
}

std::uint64_t References::drop(Ino ino, std::uint64_t count) {
  Shard& shard = shard_of(ino);
  const Lock lock(shard.mutex);
  const std::uint64_t held = shard.count(ino.v), left = held - std::min(count, held);
  shard.set(ino.v, left);
  return left;
}

std::uint64_t References::count(Ino ino) const {
  const Shard& shard = shard_of(ino);
  const Lock lock(shard.mutex);
  return shard.count(ino.v);
}

std::uint64_t References::inodes() const {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    sum += shard.inodes();
  }
  return sum;
}

std::vector<Ino> References::all() const {
  std::vector<Ino> all;
  for (const Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    shard.append_to(all);
  }
  return all;
}

std::uint64_t References::bytes() const {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    const Lock lock(shard.mutex);
    sum += shard.bytes();
  }
  return sum;
}

void References::add_orphan(Ino ino) {
  const Lock lock(orphans_mutex_);
  orphans_.insert(ino);
}

bool References::take_orphan(Ino ino) {
  const Lock lock(orphans_mutex_);
  return orphans_.erase(ino) != 0;
}

std::vector<Ino> References::take_orphans() {
  const Lock lock(orphans_mutex_);
  std::vector<Ino> all(orphans_.begin(), orphans_.end());
  orphans_.clear();
  return all;
}

}  // namespace varve::operation
