// Attaching to and detaching from a directory.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "daemon/cache_limit.h"
#include "daemon/mount_options.h"

struct fuse_session;

namespace varve::daemon {

// A directory that can be mounted on, absolute. What a killed daemon left there is cleared, with a message in the log.
// Errc::not_found, not_directory, in_use say what stands in the way.
Result<std::string> prepare_mount_point(const std::string& directory);

// From now on the kernel follows no symbolic link in what is mounted there.
Status forbid_symbolic_links(const std::string& directory);

struct MountRequest {
  std::string directory;  // from prepare_mount_point()
  std::string source;     // device or image, absolute
  bool is_block_device = false;
  bool read_only = false;
  bool is_roots_alone = false;  // nobody else can have put set-user-ID files and devices into it
};

enum class Detach { when_unused, now };
// umount(2) as root, fusermount3 otherwise; of whatever is on top there. Errc::busy: still used (only Detach::when_unused).
Status detach(const std::string& directory, Detach how);
// Of a daemon that has gone: with what it has left in the table of umount(8).
Status clear_dead(const std::string& directory);

// The kernel's end of a mount. Detaches when it ends, if nobody has yet, but never what others have mounted at its directory.
class MountPoint {
 public:
  // A block device mounted by root becomes `fuseblk` (its umount(2) waits for us), everything else `fuse`.
  static Result<std::unique_ptr<MountPoint>> attach(const MountRequest& request, const MountOptions& options);
  ~MountPoint();
  MountPoint(const MountPoint&) = delete;
  MountPoint& operator=(const MountPoint&) = delete;

  int fd() const;
  // `fuseblk`: the kernel has claimed the device, and lets nobody else mount it or claim it, under whatever name.
  bool has_claimed() const;
  const std::string& directory() const { return directory_; }
  // It has not gone and is under nothing else, as this process sees its directory. That can be believed while it is connected.
  bool is_there() const;
  bool is_connected() const;  // it is still mounted somewhere, or used
  Status detach(Detach how) const;  // as above, while it is connected. Errc::not_found: not there
  void detach_dead() const;  // when its connection has ended. Like close() for the thread that ends the mount
  // Raises the kernel's limits for this mount (readahead, share of dirty pages); root only, failures do not matter. Returns
  // how to lower the latter.
  std::optional<CacheLimit> tune() const;
  void close();  // the connection; callers of what is still open get errors from now on

 private:
  MountPoint(fuse_session* session, std::string directory) : session_(session), directory_(std::move(directory)) {}

  fuse_session* session_;
  std::string directory_;
  std::optional<std::string> device_;  // once mounted: its own until the connection ends; empty where there is no /proc
};

}  // namespace varve::daemon
