// The door to NBD for open_device(), also where it was not built in.
#pragma once

#include <memory>
#include <string>

#include "io/block_device.h"

namespace varve::remote {

// Errc::unsupported where Varve was built without libnbd.
Result<std::unique_ptr<io::BlockDevice>> open_nbd(const std::string& name, const io::OpenOptions& options);

}  // namespace varve::remote
