// One snapshot of a filesystem that is mounted, at a directory of its own: `varve mount -o snapshot=NAME` beside the running mount.
#pragma once

#include <string>

#include "base/result.h"
#include "control/place.h"

namespace varve::tool {

// Shows the snapshot read-only at `directory`, until that is unmounted; the daemon of `running` serves both. It is a bind mount,
// so it needs root. Errc::not_found: there is no such snapshot; Errc::unsupported: the running mount shows none; Errc::not_permitted.
Status mount_snapshot(const fuse::Place& running, const std::string& snapshot, const std::string& directory);

// Errc::in_use: one of them is mounted so in this mount namespace, and its readers would lose it.
Status check_not_mounted(const std::string& directory, const std::string& snapshot);

}  // namespace varve::tool
