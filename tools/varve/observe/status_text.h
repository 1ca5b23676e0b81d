// The JSON of a status (src/control/status_json.h, superblock_json.h) for people.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve::tool {

// For a quick look: at most nine lines, made for 80 columns.
std::string status_summary(const Json& status);
// One line about a server that cannot be reached now; else empty.
std::string outage_text(const Json& status);
// Says that the host has no room for what is written, and what that means; empty: it has.
std::string host_text(const Json& status);
std::string status_text(const Json& status);
std::string size_text(std::uint64_t bytes);  // "1.5 GiB"
// Seconds since 1970 become "2026-11-26 14:00:00 +0000".
std::string local_time_text(std::int64_t seconds, const char* form = "%Y-%m-%d %H:%M:%S %z");

}  // namespace varve::tool
