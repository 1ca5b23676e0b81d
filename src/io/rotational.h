// Whether a block device is a disk that seeks.
#pragma once

#include <filesystem>

namespace varve::io {

// By its directory, or its partition's, in /sys. What virtio says is not believed: the kernel says "rotational" of each such disk of a
// virtual machine, whatever it stands on. A device over others (device mapper) has it from them. Of a loop device it is what was set.
bool is_rotational(const std::filesystem::path& directory);

}  // namespace varve::io
