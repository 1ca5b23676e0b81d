#include "varve/volume/snapshots_folder.h"

#include <fmt/format.h>

#include "base/types.h"
#include "base/utf8.h"

namespace varve::tool {

Status check_shows_snapshots(const std::string& folder, const struct stat& status) {
  if (is_in_snapshots(status.st_ino)) return {};
  return Error(Errc::unsupported, fmt::format("{}: a file or folder that is really there has the name of the folder of snapshots, so that "
                                              "these cannot be seen: mount with snapshots_dir=NAME", printable(folder)));
}

}  // namespace varve::tool
