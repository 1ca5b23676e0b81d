#include "varve/snapshot_mount.h"

#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "control/mount_table.h"
#include "daemon/mount_point.h"
#include "varve/mount_client.h"

namespace varve::tool {

namespace {

// Of the running mount, in its root. Empty: it shows no snapshots.
Result<std::string> folder_of(const std::string& directory) {
  const auto status = TRY(mount_status(directory));
  return status["mount"].value("snapshots_dir", "");
}

// Not by looking for a file: ".." would be one, and a directory in a snapshot.
Status check_is_one(const fuse::Place& running, const std::string& snapshot) {
  MountClient client = TRY(MountClient::open(running.directory));
  if (TRY(client.find_snapshot(snapshot))) return {};
  return Error(Errc::not_found, fmt::format("{}: there is no snapshot '{}': see varve snapshot list {}", running.source, snapshot,
                                            running.directory));
}

// What the running mount forbids stays forbidden.
unsigned long flags_of(const std::string& path) {
  struct statvfs found {};
  if (::statvfs(path.c_str(), &found) != 0) return MS_NOSUID | MS_NODEV;
  unsigned long flags = 0;
  if (found.f_flag & ST_NOSUID) flags |= MS_NOSUID;
  if (found.f_flag & ST_NODEV) flags |= MS_NODEV;
  if (found.f_flag & ST_NOEXEC) flags |= MS_NOEXEC;
  return flags;
}

Error not_shown(const std::string& path, const std::string& point, int error) {
  if (error == EPERM)
    return {Errc::not_permitted, fmt::format("{}: the filesystem is in use, and only root can show a snapshot of it at another place: read "
                                             "it in {}", point, path)};
  return {errc_from_errno(error), fmt::format("{}: the kernel does not show {} there: {}", point, path, errno_text())};
}

Status bind_read_only(const std::string& path, const std::string& point) {
  if (::mount(path.c_str(), point.c_str(), nullptr, MS_BIND, nullptr) != 0) return not_shown(path, point, errno);
  if (::mount(nullptr, point.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | flags_of(path), nullptr) == 0) return {};
  const Error error = not_shown(path, point, errno);
  (void)fuse::detach(point, fuse::Detach::now);
  return error;
}

}  // namespace

Status mount_snapshot(const fuse::Place& running, const std::string& snapshot, const std::string& directory) {
  if (running.is_dead) return fuse::daemon_gone(running);
  const std::string folder = TRY(folder_of(running.directory));
  if (folder.empty())
    return Error(Errc::unsupported, fmt::format("{}: this mount shows no snapshots (snapshots_dir=none, or it shows one alone): unmount it "
                                                "first", running.directory));
  TRY(check_is_one(running, snapshot));
  const std::string path = fmt::format("{}/{}/{}", running.directory, folder, snapshot);
  return bind_read_only(path, TRY(fuse::prepare_mount_point(directory)));
}

Status check_not_mounted(const std::string& directory, const std::string& snapshot) {
  const auto mounted = fuse::find_mount(directory);
  const std::string root = fmt::format("/{}/{}", TRY(folder_of(directory)), snapshot);
  const auto shown = mounted ? fuse::find_mount_below(*mounted, root) : std::nullopt;
  if (!shown) return {};
  return Error(Errc::in_use, fmt::format("{}: the snapshot '{}' is mounted at {}: unmount it there first", directory, snapshot,
                                         shown->directory));
}

}  // namespace varve::tool
