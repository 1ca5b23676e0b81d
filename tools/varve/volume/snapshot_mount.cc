#include "varve/volume/snapshot_mount.h"

#include <fmt/format.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <cerrno>
#include <ostream>
#include <string_view>
#include <vector>

#include "base/json_text.h"
#include "daemon/mount_point.h"
#include "varve/volume/snapshots_folder.h"
#include "varve/volume/volume.h"

namespace varve::tool {

namespace {

// Of the running mount, in its root. Empty: it shows no snapshots.
Result<std::string> folder_of(const std::string& directory) {
  const auto status = TRY(mount_status(directory));
  return status["mount"].value("snapshots_dir", "");
}

// It does not look for a file: ".." would be one, and so would a directory in a snapshot.
Result<Serial> find_one(const control::Place& running, const std::string& snapshot) {
  Volume client = TRY(Volume::of_mount(running.directory));
  if (const auto found = TRY(client.find_snapshot(snapshot))) return *found;
  return Error(Errc::not_found, fmt::format("{}: there is no snapshot '{}': see varve snapshot list {}", running.source, snapshot,
                                            running.directory));
}

Status check_is_shown(const std::string& folder) {
  struct stat status {};
  if (::lstat(folder.c_str(), &status) != 0) return Error(errc_from_errno(errno), fmt::format("{}: {}", folder, errno_text()));
  return check_shows_snapshots(folder, status);
}

// It may have gone before the daemon saw that it is mounted.
Status check_is_held(const control::Place& running, Serial snapshot, const std::string& point, std::ostream& err) {
  Volume client = TRY(Volume::of_mount(running.directory));
  const Json one = TRY(client.find_snapshot(snapshot));
  if (one.is_null()) return Error(Errc::not_found, fmt::format("{}: the snapshot was deleted meanwhile", running.source));
  const auto places = one.value("mounted_at", Json::array());
  const auto is_here = [&](const Json& place) { return json_text(place) == json_text(point); };
  if (!std::ranges::any_of(places, is_here))
    err << fmt::format("varve: {}: the daemon runs in another mount namespace, so that the snapshot can be deleted while it is mounted "
                       "here\n", point);
  else if (one.value("automatic", false))
    err << fmt::format("varve: {}: an automatic snapshot: it stays while it is mounted, but goes if its room is needed\n", point);
  return {};
}

struct Ban {
  unsigned long found, flag;  // by statvfs(3), for mount(2)
  std::string_view word, opposite;
};
constexpr Ban kBans[] = {{ST_NOSUID, MS_NOSUID, "nosuid", "suid"}, {ST_NODEV, MS_NODEV, "nodev", "dev"},
                         {ST_NOEXEC, MS_NOEXEC, "noexec", "exec"}};

// What is asked for, and what the running mount forbids.
unsigned long flags_of(const std::string& path, const std::vector<std::string>& asked) {
  struct statvfs found {};
  const bool is_known = ::statvfs(path.c_str(), &found) == 0;
  unsigned long flags = is_known ? 0 : MS_NOSUID | MS_NODEV;
  for (const Ban& ban : kBans) {
    const auto last = std::ranges::find_if(asked.rbegin(), asked.rend(), [&](const std::string& word) {
      return word == ban.word || word == ban.opposite;
    });
    if ((found.f_flag & ban.found) || (last != asked.rend() && *last == ban.word)) flags |= ban.flag;
  }
  return flags;
}

Error not_shown(const std::string& path, const std::string& point, int error) {
  if (error == EPERM)
    return {Errc::not_permitted, fmt::format("{}: the filesystem is in use, and only root can show a snapshot of it at another place: read "
                                             "it in {}", point, path)};
  return {errc_from_errno(error), fmt::format("{}: the kernel does not show {} there: {}", point, path, errno_text())};
}

Status bind_read_only(const std::string& path, const std::string& point, const daemon::MountOptions& options) {
  if (::mount(path.c_str(), point.c_str(), nullptr, MS_BIND, nullptr) != 0) return not_shown(path, point, errno);
  const unsigned long flags = MS_REMOUNT | MS_BIND | MS_RDONLY | flags_of(path, options.kernel_flags);
  Status done = ::mount(nullptr, point.c_str(), nullptr, flags, nullptr) == 0 ? Status() : Status(not_shown(path, point, errno));
  if (done.ok() && options.nosymfollow) done = daemon::forbid_symbolic_links(point);
  if (!done.ok()) (void)daemon::detach(point, daemon::Detach::now);
  return done;
}

}  // namespace

Status mount_snapshot(const control::Place& running, const daemon::MountOptions& options, const std::string& directory, std::ostream& err) {
  const std::string& snapshot = options.fs.snapshot;
  if (running.is_dead) return control::daemon_gone(running);
  const std::string folder = TRY(folder_of(running.directory));
  if (folder.empty())
    return Error(Errc::unsupported, fmt::format("{}: this mount shows no snapshots (snapshots_dir=none, or it shows one alone): unmount it "
                                                "first", running.directory));
  const Serial serial = TRY(find_one(running, snapshot));
  TRY(check_is_shown(running.directory + "/" + folder));
  const std::string path = fmt::format("{}/{}/{}", running.directory, folder, snapshot);
  const std::string point = TRY(daemon::prepare_mount_point(directory));
  TRY(bind_read_only(path, point, options));
  const Status held = check_is_held(running, serial, point, err);
  if (!held.ok()) (void)daemon::detach(point, daemon::Detach::now);
  return held;
}

}  // namespace varve::tool
