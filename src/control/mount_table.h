// What is mounted where, as the kernel sees it; never touches a mount point, which may be dead.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/mounts.h"

namespace varve::control {

struct MountEntry : Mount {
  bool read_only = false;
  std::optional<unsigned> user;  // that has mounted it, of a FUSE filesystem

  // Any user may mount a FUSE filesystem as one of whatever device. Of another user's only that is believed that the user owns.
  bool is_believed() const;
  bool is_trusted() const;  // root's, or the caller's own

  bool is_whole() const { return root == "/"; }
  bool is_fuseblk() const { return type.starts_with("fuseblk"); }
};

// The topmost mount at exactly this directory (absolute, without symbolic links).
std::optional<MountEntry> find_mount(const std::string& directory);

// The last mount of Varve from this device or image (absolute); one that shows all of it if there is any.
std::optional<MountEntry> find_mount_of(const std::string& source);
std::optional<MountEntry> find_believed_mount_of(const std::string& source);

// All mounts of Varve that show a whole filesystem, the oldest first.
std::vector<MountEntry> varve_mounts();

// Has the daemon of a mount ended without unmounting it?
bool is_dead(const std::string& directory);

// Where else, in this mount namespace, the filesystem of a mount is: bind mounts are mounts, too.
std::optional<MountEntry> find_other_mount(const MountEntry& mounted);

// All mounts of a filesystem ("major:minor") in this mount namespace, the oldest first.
std::vector<MountEntry> mounts_of(const std::string& device);

// `directory` as an absolute path without symbolic links in it; its last part is not looked at, so that this works for
// a dead mount point. Empty when the rest does not exist.
std::string resolve_mount_point(const std::string& directory);

}  // namespace varve::control
