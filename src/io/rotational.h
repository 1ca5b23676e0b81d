// Whether a block device is a disk that seeks.
#pragma once

#include <filesystem>

namespace varve::io {

// By its directory, or its partition's, in /sys. What virtio says is not believed: the kernel says "rotational" of each such disk of a
// virtual machine, whatever it stands on. A device over others (device mapper, RAID) has it from them. A loop device is believed, as its
// flag can be set by hand: when it is set up the kernel copies that of its file's disk, also of a virtio one.
bool is_rotational(const std::filesystem::path& directory);

}  // namespace varve::io
