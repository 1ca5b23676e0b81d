// JSON, and as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace varve {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they were added

constexpr int kOneLine = -1;

// Labels, names and paths may hold any bytes: what is not UTF-8 is replaced, where the library by itself throws.
// `indent`: spaces, or kOneLine.
inline std::string json_text(const Json& json, int indent = kOneLine) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

}  // namespace varve
