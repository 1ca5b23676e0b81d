// The state of a mount as JSON: the one model that `varve status` and `varve scrub` show as text or print as it is.
#pragma once

#include "base/json_text.h"
#include "fs/status.h"

namespace varve::control {

Json to_json(const fs::FilesystemStatus& status);
Json to_json(const format::LifetimeCounters& counters);
Json to_json(const format::DeviceProfile& device);
Json to_json(const format::ErrorEvent& event);  // null when there was none
Json to_json(const scrub::State& state);        // with all findings

}  // namespace varve::control
