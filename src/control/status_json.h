// The state of a mount as JSON: the one model that `varve status` and `varve scrub` show as text or print as it is.
#pragma once

#include <nlohmann/json.hpp>

#include "fs/status.h"

namespace varve::control {

nlohmann::ordered_json to_json(const fs::FilesystemStatus& status);
nlohmann::ordered_json to_json(const format::LifetimeCounters& counters);
nlohmann::ordered_json to_json(const format::DeviceProfile& device);
nlohmann::ordered_json to_json(const format::ErrorEvent& event);  // null when there was none
nlohmann::ordered_json to_json(const scrub::State& state);        // with all findings

}  // namespace varve::control
