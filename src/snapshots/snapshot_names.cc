#include "snapshots/snapshot_names.h"

#include <vector>

namespace varve::snapshots {

void SnapshotNames::leave(const SnapshotItem& item) {
  const auto at = item.deleting ? serials_.end() : serials_.find(item.name);
  if (at != serials_.end() && at->second == item.serial) serials_.erase(at);
}

void SnapshotNames::enter(const SnapshotItem& item) {
  if (!item.deleting) serials_.insert_or_assign(item.name, item.serial);
}

// A snapshot that has its name no more leaves first: another one may have got it.
void SnapshotNames::update(std::span<const SnapshotItem> before, std::span<const SnapshotItem> after) {
  std::vector<const SnapshotItem*> entering;
  auto old = before.begin();
  for (const SnapshotItem& item : after) {
    while (old != before.end() && old->serial < item.serial) leave(*old++);
    const bool is_known = old != before.end() && old->serial == item.serial;
    if (is_known && old->name == item.name && old->deleting == item.deleting) {
      ++old;
      continue;
    }
    if (is_known) leave(*old++);
    entering.push_back(&item);
  }
  while (old != before.end()) leave(*old++);
  for (const SnapshotItem* const item : entering) enter(*item);
}

Serial SnapshotNames::find(std::string_view name) const {
  const auto at = serials_.find(name);
  return at == serials_.end() ? Serial{} : at->second;
}

}  // namespace varve::snapshots
