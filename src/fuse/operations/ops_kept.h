// What the kernel asks about snapshots: DIR/.snapshots/NAME/… They are read like anything else, and every change is refused.
#pragma once

#include <cstdint>
#include <string_view>

#include "fuse/operations/opcodes.h"

namespace varve::fuse {

// For a message about a node for which is_kept() holds.
Handler kept_handler(std::uint32_t opcode);

// Is this the folder of all snapshots, which is in the root of the filesystem, but in no listing?
bool is_snapshots_folder(Request& request, std::string_view name);
void reply_snapshots_folder(Request& request);

}  // namespace varve::fuse
