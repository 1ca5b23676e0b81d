// One view of `varve top`: the rates between two statuses (src/control/status_json.h) of the same mount, and the state at
// the second of them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace varve::tool {

// `seconds` lie between the two. The first view of a mount has only rates since it was mounted: then `before` is null.
std::string top_text(const nlohmann::ordered_json& before, const nlohmann::ordered_json& now, double seconds);

}  // namespace varve::tool
