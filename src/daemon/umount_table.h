// What makes umount(8) run our helper.
//
// For an absolute directory the umount(8) of util-linux asks statfs(2) for the type, which says no more than "fuse", and looks for
// a helper of that name. Only for a mount that has a line in util-linux's own table (utab, in /run/mount) it looks at the kernel's
// table, and runs the helper that the line names. That one waits for the daemon.
#pragma once

#include <string>

namespace varve::daemon {

// As root only, where there is such a table; failures do not matter: umount(8) then only unmounts.
void enter_umount_helper(const std::string& source, const std::string& directory);
// Of whatever is told of this directory.
void drop_umount_helper(const std::string& directory);

}  // namespace varve::daemon
