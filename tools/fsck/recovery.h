// What the next mount would do first, done by fsck.
#pragma once

#include <memory>

#include "base/result.h"
#include "io/block_device.h"

namespace varve::fsck {

// The device as it is after the engine's recovery, which goes to memory; the device itself is not written (H45).
Result<std::unique_ptr<io::BlockDevice>> recover_onto_overlay(io::BlockDevice& device);

// The same in place.
Status recover(io::BlockDevice& device);

}  // namespace varve::fsck
