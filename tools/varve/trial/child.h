// Other programs, run one after the other.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace varve::tool {

// Waits for its end. Its standard output. The error says what it said. It has no input.
Result<std::string> run_program(const std::vector<std::string>& words);

// As the shell would find it; also in the folders of administrators, which a user's PATH may not have. Empty: there is none.
std::string find_program(const std::string& name);

// One of ours: it lies beside the program that runs, or where the shell finds it.
std::string find_own_program(const std::string& name);

}  // namespace varve::tool
