// Recognises what a target holds already, so that nothing is overwritten by mistake.
#pragma once

#include <optional>
#include <string>

#include "io/block_device.h"

namespace varve::mkfs {

// "an ext2, ext3 or ext4 filesystem"…, or nothing when no known content is found.
Result<std::optional<std::string>> find_content(io::BlockDevice& device);

// Errc::exists with the reason when there is known content.
Status refuse_known_content(io::BlockDevice& device);

}  // namespace varve::mkfs
