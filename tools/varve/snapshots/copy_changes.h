// What others have changed in a directory since a snapshot was received there.
//
// Every name counts that leads into it, and so do names outside of it by which one of its files was changed.
#pragma once

#include <optional>
#include <string>

#include "compare/change_list.h"
#include "varve/snapshots/snapshot_source.h"

namespace varve::tool {

// The first one; none: it is what was received, but for the mark, and for what was changed and then brought back. `name`: of the snapshot;
// `here`, `ino`: of the directory, from the root of the filesystem on. Keeps the state of this moment in `source`.
Result<std::optional<compare::Change>> first_change_of_copy(SnapshotSource& source, const std::string& name, const std::string& here,
                                                            Ino ino);

}  // namespace varve::tool
