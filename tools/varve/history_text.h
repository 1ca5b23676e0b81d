// A line of text for each round of cleaning.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace varve::tool {

std::string history_heading();
std::string history_line(const nlohmann::ordered_json& round);  // as of control/request_json.h, without an end of line

}  // namespace varve::tool
