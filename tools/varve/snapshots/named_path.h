// A path that the user of a tool has given, and which path of its filesystem that is.
#pragma once

#include <string>

#include "base/result.h"
#include "control/inner_path.h"

namespace varve::tool {

struct NamedPath {
  control::InnerPlace at;  // links above the last name are followed
  std::string direct;      // where no link in the filesystem is followed: where one stands now, a snapshot may have a directory

  // All of the filesystem, which what is changed or looked for in snapshots needs. Errc::unsupported: only a part is mounted.
  Result<std::string> whole() const;
};

// The file or directory may have gone, and directories above it, too. Its last name may be one of a link: only a link from another
// filesystem is followed. Errc::read_only: it is in a snapshot.
Result<NamedPath> named_path(const std::string& path);

// As named_path(), also through a link at the end.
Result<NamedPath> followed_path(const std::string& path);

}  // namespace varve::tool
