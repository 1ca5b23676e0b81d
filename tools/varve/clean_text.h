// What cleaning has to say (src/control/request_json.h), for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace varve::tool {

std::string clean_text(const nlohmann::ordered_json& state);      // when it has ended
std::string clean_progress(const nlohmann::ordered_json& state);  // a line while it runs

}  // namespace varve::tool
