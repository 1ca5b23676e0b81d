// Where snapshots of the running mount are mounted by themselves: bind mounts of DIR/.varve-snapshots/NAME, or of something in it.
// They are held.
//
// The kernel tells nobody that a bind mount comes or goes, and names it by what the folder was called when it last looked. But a mount has
// a number of its own. So one that is new is looked up by its name, which is right as long as this looks before each change of
// names, and from then on its number says which snapshot it shows.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/mutex.h"
#include "base/types.h"
#include "control/mount_table.h"
#include "fs/filesystem.h"

namespace varve::fuse {

class SnapshotMounts {  // thread-safe
 public:
  // `folder`: of the snapshots, in the root of what is mounted at `mount_point`; empty: none is shown. Holds them until it ends.
  SnapshotMounts(fs::Filesystem& fs, const std::string& mount_point, const std::string& folder);
  ~SnapshotMounts();

  struct Mounted {
    Serial snapshot;
    std::string directory;
  };
  // What this mount namespace has now. Asks the kernel's table of mounts only, and that only after a change.
  std::vector<Mounted> look();

 private:
  struct Known {
    Serial snapshot;
    std::string root, directory;
  };
  using Table = std::map<std::string, Known>;  // by the numbers of mounts
  bool has_changed() REQUIRES(mutex_);
  void read() REQUIRES(mutex_);
  std::string name_in(const std::string& root) const;
  std::optional<Serial> snapshot_of(const control::MountEntry& mounted) const REQUIRES(mutex_);

  fs::Filesystem& fs_;
  const std::string device_, below_;
  const Descriptor changes_;
  Mutex mutex_{LockRank::snapshot_mounts};
  bool was_read_ GUARDED_BY(mutex_) = false;
  Table known_ GUARDED_BY(mutex_);
};

}  // namespace varve::fuse
