// The folder in the root of a mount that shows the snapshots.
#pragma once

#include <sys/stat.h>

#include <string>

#include "base/result.h"

namespace varve::tool {

// Errc::unsupported: a file or folder of users has that name, and comes first. `status`: of what `folder` names.
Status check_shows_snapshots(const std::string& folder, const struct stat& status);

}  // namespace varve::tool
