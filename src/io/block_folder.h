// What the kernel tells of a block device in /sys.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace varve::io {

std::filesystem::path block_folder(dev_t device);  // a link to the device's own, or to its partition's

// One number, as "queue/rotational". A partition finds what it does not have itself in its disk's folder.
std::optional<std::uint64_t> block_attribute(const std::filesystem::path& folder, const std::string& name);

}  // namespace varve::io
