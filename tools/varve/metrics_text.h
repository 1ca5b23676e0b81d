// Statuses of mounts as OpenMetrics text (the standard of Prometheus and the node exporter's textfile collector).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace varve::tool {

// All mounts in one text, families together, with its "# EOF". Every sample is labelled with the mount point and the device.
std::string metrics_text(const std::vector<nlohmann::ordered_json>& statuses);

}  // namespace varve::tool
