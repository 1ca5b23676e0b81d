// Which snapshot is meant by a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/result.h"
#include "varve/observe/status_text.h"

namespace varve::tool {

// "2026-11-26 02:30:00", in local time.
inline std::string local_time(std::int64_t seconds, const char* form = "%Y-%m-%d %H:%M:%S") { return local_time_text(seconds, form); }

struct ChosenSnapshot {
  std::string name;
  std::int64_t made = 0;
};

// All in `list` (control/request_json.h) but those that tools have made for themselves; oldest first.
std::vector<ChosenSnapshot> all_snapshots(const Json& list);

// Of `list` (control/request_json.h): its name, with or without "auto-"; how long ago ("10m"); or a local time ("14:30", "14:30:15",
// "2026-11-26 14:30"). Of a time it is the last one made by then. Errc::not_found says which there are.
Result<ChosenSnapshot> choose_automatic(const Json& list, const std::string& which, std::int64_t now);
// The same of all snapshots, also those that were asked for.
Result<ChosenSnapshot> choose_snapshot(const Json& list, const std::string& which, std::int64_t now);

}  // namespace varve::tool
