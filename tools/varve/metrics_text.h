// Statuses of mounts as OpenMetrics text (the standard of Prometheus and the node exporter's textfile collector).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace varve::tool {

struct Outage {
  std::string mount, device;  // the device as far as it is known
};

// All mounts in one text, families together, with its "# EOF". Every sample is labelled with the mount point and the device. Of those that
// did not answer there is varve_up 0, and nothing else.
std::string metrics_text(const std::vector<nlohmann::ordered_json>& statuses, const std::vector<Outage>& outages);

}  // namespace varve::tool
