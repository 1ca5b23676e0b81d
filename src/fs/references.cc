#include "fs/references.h"

namespace varve::fs {

std::size_t References::Shard::place_of(std::uint64_t ino) const {
  const std::size_t mask = slots.size() - 1;
  std::size_t at = hash(ino) & mask;
  while (slots[at].ino && slots[at].ino != ino) at = (at + 1) & mask;
  return at;
}

void References::Shard::grow() {
  std::vector<Slot> former = std::move(slots);
  slots.assign(former.empty() ? 16 : former.size() * 2, {});
  for (const Slot& slot : former)
    if (slot.ino) slots[place_of(slot.ino)] = slot;
}

void References::Shard::erase(std::size_t at) {
  const std::size_t mask = slots.size() - 1;
  std::size_t hole = at;
  for (std::size_t next = (at + 1) & mask; slots[next].ino; next = (next + 1) & mask) {
    const std::size_t home = hash(slots[next].ino) & mask;
    if (((next - home) & mask) < ((next - hole) & mask)) continue;  // would move before its home
    slots[hole] = slots[next];
    hole = next;
  }
  slots[hole] = {};
  --used;
}

void References::add(Ino ino, std::uint64_t count) {
  Shard& shard = shard_of(ino);
  std::lock_guard lock(shard.mutex);
  if ((shard.used + 1) * 8 > shard.slots.size() * 7) shard.grow();
  Slot& slot = shard.slots[shard.place_of(ino.v)];
  if (!slot.ino) {
    slot.ino = ino.v;
    ++shard.used;
  }
  slot.count += count;
}

std::uint64_t References::drop(Ino ino, std::uint64_t count) {
  Shard& shard = shard_of(ino);
  std::lock_guard lock(shard.mutex);
  if (shard.slots.empty()) return 0;
  const std::size_t at = shard.place_of(ino.v);
  Slot& slot = shard.slots[at];
  if (!slot.ino) return 0;
  if (slot.count > count) return slot.count -= count;
  shard.erase(at);
  return 0;
}

std::uint64_t References::count(Ino ino) const {
  const Shard& shard = shard_of(ino);
  std::lock_guard lock(shard.mutex);
  return shard.slots.empty() ? 0 : shard.slots[shard.place_of(ino.v)].count;
}

std::uint64_t References::inodes() const {
  std::uint64_t sum = 0;
  for (const Shard& shard : shards_) {
    std::lock_guard lock(shard.mutex);
    sum += shard.used;
  }
  return sum;
}

void References::add_orphan(Ino ino) {
  std::lock_guard lock(orphans_mutex_);
  orphans_.insert(ino);
}

bool References::take_orphan(Ino ino) {
  std::lock_guard lock(orphans_mutex_);
  return orphans_.erase(ino) != 0;
}

std::vector<Ino> References::take_orphans() {
  std::lock_guard lock(orphans_mutex_);
  std::vector<Ino> all(orphans_.begin(), orphans_.end());
  orphans_.clear();
  return all;
}

}  // namespace varve::fs
