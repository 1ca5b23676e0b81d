// What the system knows about a block device or image file.
#pragma once

#include <sys/stat.h>

#include <optional>
#include <string>

#include "base/result.h"
#include "io/block_device.h"

namespace varve::io {

// Everything of the geometry but `direct` and `backend`. The size is rounded down to whole blocks.
Result<Geometry> geometry_of(int fd, const struct stat& status, const std::string& path, bool writable);

// The size of the units in which the device takes direct I/O; 0 where it takes none; nothing where the system does not
// say.
std::optional<unsigned> direct_alignment(int fd);

// Where the device or image is mounted, or "swap", or empty.
std::string user_of(const struct stat& status);

}  // namespace varve::io
