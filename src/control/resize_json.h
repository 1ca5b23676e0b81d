// A change of size between the tool and the daemon: control.h, kResizeIoctl.
#pragma once

#include <string_view>

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "fs/resize_job.h"

namespace varve::fuse {

nlohmann::ordered_json to_json(const fs::ResizeRequest& request);
nlohmann::ordered_json to_json(const fs::ResizeState& state);
// Errc::invalid: not what to_json() has written.
Result<fs::ResizeRequest> resize_request_from(std::string_view text);

}  // namespace varve::fuse
