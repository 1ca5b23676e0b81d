// What `varve clean` works on: a mounted filesystem, through its daemon, or an image that nobody has mounted, with the
// engine in this process.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json_text.h"
#include "base/result.h"
#include "fs/clean_job.h"

namespace varve::tool {

class CleanTarget {
 public:
  virtual ~CleanTarget() = default;
  // Begins; `paths` become inodes. Errc::invalid, not_found, busy… say what is wrong.
  virtual Status start(fs::CleanRequest request, const std::vector<std::string>& paths) = 0;
  virtual Status stop() = 0;
  virtual Result<Json> state() = 0;  // control/request_json.h
  virtual Status close() { return {}; }                // what is unfinished is left as after a stop
};

// Where the filesystem is mounted that holds this file or directory; none for a mount point itself, for what is not on
// Varve, and for images that lie on one.
std::optional<std::string> mount_that_holds(const std::string& path);

std::unique_ptr<CleanTarget> mounted_target(const std::string& directory);
// Recovers the image first where that is needed. Errc::in_use: mounted, or open elsewhere. A dry run writes nothing at all,
// not even the recovery.
Result<std::unique_ptr<CleanTarget>> image_target(const std::string& path, bool dry_run);

}  // namespace varve::tool
