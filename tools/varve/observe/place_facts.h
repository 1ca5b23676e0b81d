// What the status of a filesystem cannot say by itself: where the messages of a dead daemon are, how much longer the device is.
#pragma once

#include <cstdint>
#include <string>

#include "base/json_text.h"
#include "control/onlooker.h"
#include "control/place.h"

namespace varve::tool {

// Returns the length of a device or an image file, in bytes. 0: it is none, or that cannot be told.
std::uint64_t length_of(const std::string& path);

// Returns how many bytes of the device or image behind the filesystem are unused, of which `varve resize` could make segments. 0: none, or
// that cannot be known from here, as of a server's disk.
std::uint64_t unused_bytes(const control::Place& place, std::uint64_t device_blocks, std::uint64_t segment_blocks);
// Returns by how much the image is shorter than the filesystem that it is mounted with: somebody has cut it off.
std::uint64_t missing_bytes(const control::Place& place, std::uint64_t device_blocks);

// Into the status of what is not mounted here: who may have it elsewhere.
void add_presence(Json& status, control::Presence presence, const std::string& holder);

// Into the status (control/status_json.h, superblock_status()) of what is there.
void add_place_facts(Json& status, const control::Place& place);

}  // namespace varve::tool
