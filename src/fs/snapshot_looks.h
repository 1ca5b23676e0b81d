// Looks at snapshots without a walk over all of them, for the folder that shows them.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "base/types.h"
#include "fs/snapshot_list.h"

namespace varve::fs {

class Filesystem;

// By any thread.
std::optional<SnapshotFacts> find_snapshot(Filesystem& filesystem, std::string_view name);
// Returns the snapshots that came behind this one, the oldest first, so many at most.
std::vector<SnapshotFacts> snapshots_behind(Filesystem& filesystem, Serial serial, std::size_t most);

struct SnapshotNews {
  Serial newest;      // none: there are no snapshots
  Timestamp changed;  // when one was made, named or deleted, as far as this mount knows
};
SnapshotNews snapshot_news(Filesystem& filesystem);

}  // namespace varve::fs
