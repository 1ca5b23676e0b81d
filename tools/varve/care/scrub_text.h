// A scrub's report for people.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve::tool {

std::string scrub_progress(const Json& report);  // one line, no newline
double scrub_share(const Json& report);          // of what is there to be verified, from 0 to 1
std::string scrub_text(const Json& report);      // everything, a line per finding

}  // namespace varve::tool
