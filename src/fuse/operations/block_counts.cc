#include "fuse/operations/block_counts.h"

#include <chrono>
#include <utility>

namespace varve::fuse {

namespace {
constexpr auto kEvery = std::chrono::seconds(1);
constexpr std::size_t kMostUnseen = 65536;  // more are not remembered: their blocks are counted when they are written
}  // namespace

BlockCounts::BlockCounts(std::function<void(Ino)> drop) : drop_(std::move(drop)) {
  thread_.start("varve-blocks", [this] { run(); });
}

void BlockCounts::note(Ino ino) {
  stale_.insert(ino);
  last_ = ino.v;
  if (!any_stale_.exchange(true)) thread_.wake();
}

// What takes an inode out of stale_ happens before its attributes are read, and those have this write by then.
void BlockCounts::wrote(Ino ino) {
  if (last_ == ino.v && !any_unseen_) return;
  const Lock lock(mutex_);
  note(ino);
  unseen_.erase(ino);
  any_unseen_ = !unseen_.empty();
}

void BlockCounts::named_in(Ino directory) {
  if (last_ == directory.v) return;
  const Lock lock(mutex_);
  note(directory);
}

void BlockCounts::will_write(Ino ino) {
  const Lock lock(mutex_);
  if (unseen_.size() >= kMostUnseen) return;
  unseen_.insert(ino);
  any_unseen_ = true;
  note(ino);
}

fs::Attr BlockCounts::with_unseen(fs::Attr attr) const {
  if (attr.blocks != 0 || !any_unseen_) return attr;
  const Lock lock(mutex_);
  if (unseen_.contains(attr.ino)) attr.blocks = 1;
  return attr;
}

bool BlockCounts::is_unseen(Ino ino) const {
  if (!any_unseen_) return false;
  const Lock lock(mutex_);
  return unseen_.contains(ino);
}

void BlockCounts::asked(Ino ino) {
  if (!any_stale_) return;
  const Lock lock(mutex_);
  last_ = 0;
  stale_.erase(ino);
}

void BlockCounts::forget(Ino ino) {
  if (!any_stale_ && !any_unseen_) return;
  const Lock lock(mutex_);
  last_ = 0;
  stale_.erase(ino);
  unseen_.erase(ino);
  any_unseen_ = !unseen_.empty();
}

void BlockCounts::run() {
  while (thread_.sleep() && thread_.rest(kEvery)) {
    std::unordered_set<Ino> told;
    {
      const Lock lock(mutex_);
      told.swap(stale_);
      last_ = 0;
      any_stale_ = false;
    }
    for (const Ino ino : told) drop_(ino);
  }
}

}  // namespace varve::fuse
