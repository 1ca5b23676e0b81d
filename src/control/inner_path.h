// Which path of its filesystem a path of the host is. A bind mount may show a part of a filesystem at any place: the kernel says of each
// mount which part that is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/mounts.h"
#include "base/result.h"

namespace varve::control {

// The mount that has a path: the one with this id. Empty, or not in the table: the last one at the deepest directory above.
std::optional<Mount> mount_of_path(const std::vector<Mount>& table, const std::string& id, const std::string& place);

// From the root of the filesystem on. None: the mount does not have this path, or shows a directory that has been removed.
std::optional<std::string> path_inside(const Mount& mount, const std::string& place);

struct InnerPlace {
  std::string place;          // on the host
  std::string path;           // from the root of the filesystem on: "/letters/one"
  std::string whole;          // where all of the filesystem is mounted and can be reached; empty: nowhere
  bool in_snapshots = false;  // in the folder of snapshots, or in one of them
};

// `place` is absolute, and no name above its last one is a link. It may have gone, and directories above it, too.
// Errc::not_varve: it is in another filesystem; Errc::io: the daemon is gone; Errc::not_found: what is mounted there has been removed.
Result<InnerPlace> find_inner(const std::string& place);

}  // namespace varve::control
