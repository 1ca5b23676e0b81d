// Opening a device by its name. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "io/block_device.h"

namespace varve::remote {

// Opens a block device, an image file, or an export or image of the network (network_name.h), with the best backend that works here.
Result<std::unique_ptr<io::BlockDevice>> open_device(const std::string& path, const io::OpenOptions& options);

}  // namespace varve::remote
