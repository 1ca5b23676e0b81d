// What the next mount would do first, done by fsck.
#pragma once

#include "repair/repair.h"

namespace varve::fsck {

// repair::Recover with the engine, and without its messages.
Status recover(io::BlockDevice& device, repair::Tolerance tolerance);

}  // namespace varve::fsck
