// Asks libblkid what a device holds.
#pragma once

#include <optional>
#include <string>

#include "io/block_device.h"

namespace varve::mkfs {

// "a filesystem of type hfsplus"…, or nothing. Knows all that the system's tools know, if it is whole.
Result<std::optional<std::string>> probe_content(io::BlockDevice& device);

}  // namespace varve::mkfs
