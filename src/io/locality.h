// Whether only this machine can reach a storage.
#pragma once

#include "io/stacking.h"

namespace varve::io {

// True for a local bus, memory, and files of local filesystems. False where another machine could write the same bytes (network
// storage, devices of a hypervisor), and wherever it cannot be found out.
bool is_local(const Stack& stack);

}  // namespace varve::io
