// An image that cannot be repaired in place.
#pragma once

#include <memory>

#include "io/mem_device.h"

namespace varve::repair::test {

// What users cannot do, but a fault might: files own every block. Nothing can be written beside what is there.
// The last blocks of the only file do not match their checksums.
std::unique_ptr<io::MemDevice> image_without_a_free_block();

}  // namespace varve::repair::test
