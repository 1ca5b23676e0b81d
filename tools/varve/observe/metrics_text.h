// Statuses of mounts as text for Prometheus, in one of two formats.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_text.h"

namespace varve::tool {

// OpenMetrics is the standard. The older format of Prometheus is what the node exporter's textfile collector and promtool read.
enum class MetricsFormat : std::uint8_t { openmetrics, prometheus };

struct Outage {
  std::string mount, device;  // the device as far as it is known
};

// All mounts in one text, families together. Every sample is labelled with the mount point and the device. Of those that did not answer
// there is varve_up 0, and nothing else.
std::string metrics_text(const std::vector<Json>& statuses, const std::vector<Outage>& outages,
                         MetricsFormat format = MetricsFormat::openmetrics);

}  // namespace varve::tool
