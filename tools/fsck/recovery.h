// What the next mount would do first, done by fsck.
#pragma once

#include "base/result.h"
#include "io/block_device.h"

namespace varve::fsck {

// Mounts with the engine, which replays the log, and unmounts. `accept_log_damage`: repair::Recover.
Status recover(io::BlockDevice& device, bool accept_log_damage);

}  // namespace varve::fsck
