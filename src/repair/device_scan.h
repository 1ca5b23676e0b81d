// One pass over a whole device, for what no reference leads to any more.
#pragma once

#include <functional>
#include <span>

#include "check/check.h"
#include "io/block_device.h"

namespace varve::repair {

// Calls visit for every readable block, in order. Unreadable ones are left out.
void scan_device(io::BlockDevice& device, check::Progress* progress,
                 const std::function<void(BlockAddr, std::span<const std::byte>)>& visit);

}  // namespace varve::repair
