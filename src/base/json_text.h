// JSON as text.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace varve {

constexpr int kOneLine = -1;

// Labels, names and paths may hold any bytes: what is not UTF-8 is replaced, where the library by itself throws.
// `indent`: spaces, or kOneLine.
inline std::string json_text(const nlohmann::ordered_json& json, int indent = kOneLine) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace varve
