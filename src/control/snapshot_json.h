// Snapshots between the tool and the daemon: control.h, kSnapshotsIoctl.
#pragma once

#include <nlohmann/json.hpp>

#include "fs/snapshot_list.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const fs::SnapshotState& state);

}  // namespace varve::fuse
