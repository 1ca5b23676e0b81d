// A mount or an image as one page that needs nothing else: no network, no scripts from elsewhere; light and dark.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "varve/observe/doctor_checks.h"
#include "varve/observe/map/device_map.h"

namespace varve::tool {

struct ReportFacts {
  std::string made;                // when, in words
  Json status;   // as of `varve status --json`
  Json history;  // rounds of cleaning; null: not mounted
  std::optional<DeviceMap> map;    // none: the device could not be read
  std::map<Ino, std::string> names;  // of files with most blocks on it, as far as they are known
  std::string no_map;              // why
  std::vector<Finding> findings;   // what the doctor says
};

std::string report_html(const ReportFacts& facts);

}  // namespace varve::tool
