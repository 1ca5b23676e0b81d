// Where the daemon's messages go: a file, systemd's journal, the system's log, or its standard output.
#pragma once

#include <string>

#include "base/result.h"
#include "daemon/mount_options.h"

namespace varve::daemon {

// The place of the log as `varve status` names it: a file, or how to ask the system's log. Made here, so that it can be written. Where
// there is no system log, options.log_file names a file afterwards.
std::string choose_log(MountOptions& options, bool foreground, const std::string& directory);

// The name of a file of messages that nobody has given another one: no two directories have the same.
std::string log_name(const std::string& directory);

// Where the messages are of a daemon that has served this directory and says nothing any more, as far as that can be known.
std::string former_log(const std::string& directory);

// From now on. `source`, `directory`: what is mounted where, for the journal.
Status open_log(const MountOptions& options, bool foreground, const std::string& source, const std::string& directory);

}  // namespace varve::daemon
