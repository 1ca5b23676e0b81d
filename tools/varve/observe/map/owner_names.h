// Finds names for the owners on a map.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/types.h"

namespace varve::tool {

// Looked for in the mounted directory, which takes a walk through all of it; none where `directory` is empty.
std::map<Ino, std::string> owner_names(const std::vector<Ino>& owners, const std::string& directory);

}  // namespace varve::tool
