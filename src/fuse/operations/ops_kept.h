// The kernel asks about snapshots here: DIR/.varve-snapshots/NAME/… They are read like anything else, and every change is refused.
#pragma once

#include <cstdint>
#include <string_view>

#include "fs/filesystem.h"
#include "fuse/operations/opcodes.h"

namespace varve::fuse {

// For a message about a node for which is_kept() holds.
Handler kept_handler(std::uint32_t opcode);

// Is this the folder of all snapshots, which is in the root of the filesystem, but in no listing?
bool is_snapshots_folder(Request& request, std::string_view name);
// This asks about the root, and there is such a folder.
bool hides_snapshots_folder(Request& request);
// For a listing that has to show it (hidden_folder.h): it comes before all others.
fs::DirectoryEntry snapshots_folder_entry(Request& request, std::uint64_t last_cookie);
void reply_snapshots_folder(Request& request);

}  // namespace varve::fuse
