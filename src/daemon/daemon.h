// A mount from beginning to end: open the device, recover, attach, serve, detach, checkpoint.
#pragma once

#include <string>

#include "base/result.h"
#include "daemon/mount_options.h"

namespace varve::daemon {

struct DaemonArguments {
  std::string source;     // device or image
  std::string directory;  // mount point
  MountOptions options;
  bool foreground = false;
  std::string log{};  // where its messages go, in words; run_daemon() fills it in
};

// `varve mount`. In the foreground: returns when the mount has ended. Otherwise: returns in the first process as soon
// as the mount can be used or has failed; the second process ends inside, with status 0 if the filesystem is clean.
// No other thread may be running.
Status run_daemon(const DaemonArguments& arguments);

}  // namespace varve::daemon
