// The door to Ceph's images for open_device(), also where they were not built in.
#pragma once

#include <memory>
#include <string>

#include "io/block_device.h"

namespace varve::remote {

// Errc::unsupported where Varve was built without librbd, or it is not installed.
Result<std::unique_ptr<io::BlockDevice>> open_rbd(const std::string& name, const io::OpenOptions& options);

}  // namespace varve::remote
