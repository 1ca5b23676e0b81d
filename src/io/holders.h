// Processes that hold an image or a device, for messages and for what ends them. They are found in /proc: root sees all of this kernel,
// other users their own.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace varve::io {

struct Holder {
  pid_t pid = 0;
  std::string command;    // its words, as far as they fit a message
  std::string source;     // how it calls what it holds
  std::string directory;  // where that is mounted, as its namespace sees it, or another one that still shows it; empty: nowhere
  std::string device;     // number of that mount, as "0:45"; empty: not known
  bool is_varve = false;  // the same program as this one, or another of Varve
  bool is_elsewhere = false;  // that is in another mount namespace, or the process is
};

// Returns the processes that have it open, but for this one; the daemons of mounts come first.
std::vector<Holder> holders_of(const struct stat& file);

// "process 12 (varve mount a.img d), mounted at /mnt/d in another mount namespace"
std::string describe(const Holder& holder);

// All daemons of mounts on this machine, with what they have mounted: also those whose namespace is another one.
std::vector<Holder> mount_daemons();

// The same for one process; `pid` 0: it is none.
Holder mount_daemon(pid_t pid);

// Processes in other mount namespaces that still show the filesystem with this number ("0:45") and source, at most `most`.
std::vector<Holder> keepers_of(const std::string& device, const std::string& source, std::size_t most);

}  // namespace varve::io
