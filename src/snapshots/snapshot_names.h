// Which snapshot has which name: kept beside their list, so that a look for a name takes no walk over all of them.
#pragma once

#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "format/snapshot.h"

namespace varve::snapshots {

using format::SnapshotItem;

// Finds those that are not being deleted. For one thread at a time.
class SnapshotNames {
 public:
  // Both lists are in the order of their serials. `before` is what the last call has got as `after`, and nothing at first. Only names that
  // differ take memory.
  void update(std::span<const SnapshotItem> before, std::span<const SnapshotItem> after);

  Serial find(std::string_view name) const;  // none: there is no such snapshot
  std::size_t count() const { return serials_.size(); }

 private:
  void leave(const SnapshotItem& item);
  void enter(const SnapshotItem& item);

  std::map<std::string, Serial, std::less<>> serials_;
};

}  // namespace varve::snapshots
