#include "changes/delta.h"

#include <algorithm>

#include "base/invariant.h"

namespace varve::changes {

// It may belong to a newer entry by now.
void DirectoryDelta::forget_name(std::string_view name, std::uint64_t cookie) {
  const auto named = by_name.find(name);
  if (named != by_name.end() && named->second == cookie) by_name.erase(named);
}

void DirectoryDelta::add(std::uint64_t cookie, AddedEntry entry) {
  if (const auto former = added.find(cookie); former != added.end()) forget_name(former->second.name, cookie);  // a log may say it twice
  const auto at = added.insert_or_assign(cookie, std::move(entry)).first;
  by_name.erase(at->second.name);  // the key must be a view of the string that stays
  by_name.emplace(at->second.name, cookie);
  INVARIANT(by_name.size() <= added.size());
}

void DirectoryDelta::remove(std::uint64_t cookie, std::string_view name, bool replaying) {
  std::string kept(name);  // `name` may be a view of what goes away here
  auto found = added.find(cookie);
  const bool was_added = found != added.end();
  if (was_added) {
    forget_name(found->second.name, cookie);
    added.erase(found);
  } else {
    removed.emplace(cookie, kept);
  }
  if (replaying) return;
  // Added and removed between two chunks: neither needs a record.
  if (!unsealed_added.erase(cookie)) unsealed_removed.emplace(cookie, std::move(kept));
}

void DirectoryDelta::replace(std::uint64_t cookie, AddedEntry entry) {
  remove(cookie, entry.name, false);
  add(cookie, std::move(entry));
  unsealed_added.insert(cookie);
}

InodeDelta& Delta::add(Ino ino) {
  auto fresh = std::make_unique<InodeDelta>(ino);
  fresh->generation = generation_;
  InodeDelta& delta = *fresh;
  const Lock lock(mutex_);
  inodes_.push_back(std::move(fresh));
  return delta;
}

void Delta::sort() {
  const Lock lock(mutex_);
  std::sort(inodes_.begin(), inodes_.end(), [](const auto& a, const auto& b) { return a->ino < b->ino; });
  for (std::size_t i = 1; i < inodes_.size(); ++i) INVARIANT(inodes_[i - 1]->ino != inodes_[i]->ino);
}

}  // namespace varve::changes
