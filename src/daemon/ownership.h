// Which files a daemon may trust. Code that it loads, and files that it writes to, must belong to its user or to root. Nobody else may
// be able to change them or put others in their place.
#pragma once

#include <string>

#include "base/result.h"

namespace varve::daemon {

// A shared object to load: the file that a path leads to, without links. That name is the one to load. The path may lead elsewhere by then,
// and one without a slash would be looked for in the folders of libraries. Errc::not_permitted says whose the file is, or which other
// users may write to it or to its folder.
Result<std::string> check_loadable(const std::string& path);
// A file to append to; it need not exist. The same, and Errc::not_permitted for a symbolic link or what is no file.
Status check_writable_by_us_alone(const std::string& path);

}  // namespace varve::daemon
