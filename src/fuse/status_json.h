// The state of a mount as JSON: the one model that `varve status` shows as text or prints as it is.
#pragma once

#include <nlohmann/json.hpp>

#include "fs/status.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const fs::FilesystemStatus& status);
nlohmann::ordered_json to_json(const format::LifetimeCounters& counters);
nlohmann::ordered_json to_json(const format::ErrorEvent& event);  // null when there was none

}  // namespace varve::fuse
