#include "control/inner_path.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <ranges>
#include <string_view>

#include "base/errc.h"
#include "base/types.h"
#include "control/mount_table.h"
#include "control/place.h"

namespace varve::control {

namespace {

bool is_within(const std::string& directory, const std::string& place) {
  return directory == "/" || place == directory || place.starts_with(directory + "/");
}

// The number in the mount table of the mount that has this file. Empty: the kernel does not say it.
std::string mount_id(const std::string& path) {
#ifdef STATX_MNT_ID
  struct statx found {};
  const int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC;
  if (::statx(AT_FDCWD, path.c_str(), flags, STATX_MNT_ID, &found) == 0 && (found.stx_mask & STATX_MNT_ID))
    return std::to_string(found.stx_mnt_id);
#else
  (void)path;
#endif
  return "";
}

struct Nearest {
  std::string path;
  struct stat status {};
};

// Looks up a path, or the deepest directory of it that is there.
Result<Nearest> nearest_to(const std::string& place) {
  for (std::filesystem::path at = place;; at = at.parent_path()) {
    Nearest found{at.string(), {}};
    if (::lstat(found.path.c_str(), &found.status) == 0) return found;
    const int why = errno;
    if (why == ENOTCONN || why == ECONNABORTED) (void)TRY(find_mounted(found.path));
    if ((why != ENOENT && why != ENOTDIR) || at == at.root_path())
      return Error(errc_from_errno(why), fmt::format("{}: {}", place, std::generic_category().message(why)));
  }
}

// A mount may lie below another one, where nobody can reach it.
std::string whole_of(const std::vector<Mount>& table, const Mount& mount) {
  if (mount.root == "/") return mount.directory;
  for (const Mount& one : table | std::views::reverse) {
    if (one.device != mount.device || one.root != "/") continue;
    const std::string id = mount_id(one.directory);
    if (id.empty() || id == one.id) return one.directory;
  }
  return "";
}

// In the words that all commands have for a directory of another filesystem.
Error not_varve(const std::string& place, const Nearest& nearest) {
  const std::string directory = S_ISDIR(nearest.status.st_mode) ? nearest.path : std::filesystem::path(nearest.path).parent_path().string();
  const auto found = find_mounted(directory);
  if (found.fails_with(Errc::not_varve)) return found.error();
  return {Errc::not_varve, fmt::format("{}: not in a mounted Varve filesystem", place)};
}

}  // namespace

std::optional<Mount> mount_of_path(const std::vector<Mount>& table, const std::string& id, const std::string& place) {
  const Mount* best = nullptr;
  for (const Mount& one : table) {
    if (!is_within(one.directory, place)) continue;
    if (!id.empty() && one.id == id) return one;
    if (!best || one.directory.size() >= best->directory.size()) best = &one;
  }
  return best ? std::optional(*best) : std::nullopt;
}

std::optional<std::string> path_inside(const Mount& mount, const std::string& place) {
  constexpr std::string_view kRemoved = "//deleted";  // no path has two slashes
  if (!is_within(mount.directory, place) || !mount.root.starts_with('/') || mount.root.ends_with(kRemoved)) return std::nullopt;
  const std::string rest = mount.directory == "/" ? place : place.substr(mount.directory.size());
  std::string path = (mount.root == "/" ? "" : mount.root) + (rest == "/" ? "" : rest);
  return path.empty() ? "/" : path;
}

Result<InnerPlace> find_inner(const std::string& place) {
  const Nearest nearest = TRY(nearest_to(place));
  const std::vector<Mount> table = mounts();
  const auto mount = mount_of_path(table, mount_id(nearest.path), nearest.path);
  if (!mount || !mount->is_varve()) return not_varve(place, nearest);
  auto path = path_inside(*mount, place);
  if (!path)
    return Error(Errc::not_found, fmt::format("{}: what is mounted at {} has been removed from its filesystem: unmount it", place,
                                              mount->directory));
  return InnerPlace{place, *std::move(path), whole_of(table, *mount), is_in_snapshots(nearest.status.st_ino)};
}

}  // namespace varve::control
