// A scrub's report for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace varve::tool {

std::string scrub_progress(const nlohmann::ordered_json& report);  // one line, no newline
std::string scrub_text(const nlohmann::ordered_json& report);      // everything, a line per finding

}  // namespace varve::tool
