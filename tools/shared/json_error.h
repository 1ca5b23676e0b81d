// An error for programs that have asked for JSON: {"error": "…", "exit_status": 1}.
#pragma once

#include <string>

#include "base/json_text.h"

namespace varve {

inline std::string json_error(const std::string& message, int exit_status) {
  return json_text(Json{{"error", message}, {"exit_status", exit_status}}, 2) + "\n";
}

}  // namespace varve
