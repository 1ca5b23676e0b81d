// A line of text for each round of cleaning.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve::tool {

std::string history_heading();
std::string history_line(const Json& round);  // as of control/request_json.h, without an end of line

}  // namespace varve::tool
