// Loop devices give an image a second name, which knows nothing of the locks on the first.
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

namespace varve::io {

// Of all loop devices that stand on this image, as "/dev/loop3". Those set up under names that are not seen from here are missing.
std::vector<std::string> loop_devices_on(const struct stat& image);

// The image that a loop device stands on, or "" for every other device.
std::string image_below(const struct stat& device);

// Whether a mount, swap, RAID or another Varve process has the device. Who may not open it learns only of mounts and swap.
bool is_claimed(const std::string& device);

}  // namespace varve::io
