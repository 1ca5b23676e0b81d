// Files in the order in which they should stand on the device, for strategies that go by files. Namespaces are none of the
// cleaner's business: the room that knows them makes the list (src/jobs/file_walk.h).
#pragma once

#include <cstdint>
#include <optional>

#include "base/result.h"
#include "base/types.h"

namespace varve::cleaner {

// Used by the thread that cleans; may read from the device.
class FileSource {
 public:
  virtual ~FileSource() = default;
  // The next regular file; none: that was the last one. Errors end the walk.
  virtual Result<std::optional<Ino>> next() = 0;
  // Directories so far that could not be read, or not to their end: what stands there only is not among the files.
  virtual std::uint64_t unreadable_directories() const { return 0; }
};

}  // namespace varve::cleaner
