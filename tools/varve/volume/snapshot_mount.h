// One snapshot of a filesystem that is mounted, at a directory of its own: `varve mount -o snapshot=NAME` beside the running mount.
#pragma once

#include <iosfwd>
#include <string>

#include "base/result.h"
#include "control/place.h"
#include "daemon/mount_options.h"

namespace varve::tool {

// Shows the snapshot read-only at `directory`, until that is unmounted; the daemon of `running` serves both, and holds the snapshot.
// It is a bind mount, so it needs root, and of the options it takes those that forbid something. `err`: how far it is not held.
// Errc::not_found: there is no such snapshot; Errc::unsupported: the running mount shows none; Errc::not_permitted.
Status mount_snapshot(const control::Place& running, const daemon::MountOptions& options, const std::string& directory, std::ostream& err);

}  // namespace varve::tool
