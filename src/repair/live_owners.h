// What `.ffile` and `.mfile` say of live blocks.
#pragma once

#include <functional>

#include "format/map_record.h"
#include "format/superblock.h"
#include "io/block_device.h"

namespace varve::repair {

// Calls visit for each live block with its owner, in order. False: parts of the maps cannot be read, and blocks may be missing.
bool for_each_owner(io::BlockDevice& device, const format::Superblock& super,
                    const std::function<void(BlockAddr, const format::ReverseEntry&)>& visit);

}  // namespace varve::repair
