// One view of `varve top`: the rates between two statuses (src/control/status_json.h) of the same mount, and the state at
// the second of them.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve::tool {

// `seconds` lie between the two. The first view of a mount has only rates since it was mounted: then `before` is null.
std::string top_text(const Json& before, const Json& now, double seconds);

}  // namespace varve::tool
