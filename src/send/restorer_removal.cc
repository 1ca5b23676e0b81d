// What goes, and what must not: nothing is removed or changed where something else is mounted.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/invariant.h"
#include "send/host_file.h"
#include "send/restorer.h"

namespace varve::send {

// Another filesystem, or a part of this one: what the mounted tree has there cannot be seen.
bool Restorer::is_mount_point(const std::string& path) const {
  const Spot spot = spot_of(root_.get(), path);
  return spot.directory && !Descriptor(open_below(spot.directory.get(), spot.name, O_PATH)) && errno == EXDEV;
}

Status Restorer::pass_over(const std::string& path) {
  restored_.mounts.push_back(path);
  return {};
}

Status Restorer::remove_new(const std::string& path, const Entry& entry) {
  if (is_mount_point(path)) return pass_over(path);
  const bool is_directory = entry.type == DT_DIR;
  if (options_.only_says || TRY(remove(path, is_directory))) note("removed", path + (is_directory ? "/" : ""));
  return {};
}

// With all that is in it. False: it stays, since something is mounted there or below, or since that cannot be removed.
Result<bool> Restorer::remove(const std::string& path, bool is_directory) {
  INVARIANT(path.starts_with('/') && path.size() > 1);  // never the root
  if (is_mount_point(path)) {
    TRY(pass_over(path));
    return false;
  }
  bool is_empty = true;
  if (is_directory)
    for (const auto& [name, entry] : TRY(here(path))) is_empty = TRY(remove_below(below(path, name), entry.type == DT_DIR)) && is_empty;
  if (!is_empty) return false;
  const Spot spot = spot_to_change(path);
  const auto take = [&] { return ::unlinkat(spot.directory.get(), spot.name.c_str(), is_directory ? AT_REMOVEDIR : 0); };
  if (unlocking_name(spot.directory.get(), spot.name, take) != 0 && errno != ENOENT) return failed("removing", path);
  return true;
}

Result<bool> Restorer::remove_below(const std::string& path, bool is_directory) {
  auto gone = remove(path, is_directory);
  if (gone.ok()) return gone;
  TRY(unless_it_ends_all(path, gone.error()));
  return false;
}

}  // namespace varve::send
