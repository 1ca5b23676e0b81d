// What cleaning has to say (src/control/request_json.h), for people.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve::tool {

std::string clean_text(const Json& state);      // when it has ended
std::string clean_progress(const Json& state);  // a line while it runs
// The share of all that is to be done goes from 0 to 1; negative: nobody knows.
double clean_share(const Json& state);

}  // namespace varve::tool
