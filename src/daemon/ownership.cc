#include "daemon/ownership.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/errc.h"

namespace varve::daemon {

namespace {

bool is_ours(uid_t owner) { return owner == 0 || owner == ::geteuid(); }

// A group that the user is in by itself, as many systems make one for each user, counts as the user.
bool others_write(const struct stat& status) {
  return (status.st_mode & S_IWOTH) ||
         ((status.st_mode & S_IWGRP) && status.st_gid != 0 && status.st_gid != ::getegid());
}

// In a folder with the sticky bit, as /tmp, others cannot replace what is there, but make what is not.
Status check_folder(const std::filesystem::path& path, bool exists) {
  std::error_code error;
  const auto folder = std::filesystem::absolute(path, error).parent_path();
  struct stat status {};
  if (error || ::stat(folder.c_str(), &status) != 0)
    return Error(errc_from_errno(errno), fmt::format("{}: {}", folder.string(), errno_text()));
  const bool replaceable = others_write(status) && !(exists && (status.st_mode & S_ISVTX));
  if (is_ours(status.st_uid) && !replaceable) return {};
  return Error(Errc::not_permitted,
               fmt::format("{}: others may put another file in its place (the folder {} belongs to user {}, mode {:o})",
                           path.string(), folder.string(), status.st_uid, status.st_mode & 07777));
}

Status check_file(const std::string& path, const struct stat& status) {
  if (!S_ISREG(status.st_mode)) return Error(Errc::not_permitted, fmt::format("{}: not a plain file", path));
  if (is_ours(status.st_uid) && !others_write(status)) return {};
  return Error(Errc::not_permitted, fmt::format("{}: others may change it (it belongs to user {}, mode {:o})", path,
                                                status.st_uid, status.st_mode & 07777));
}

}  // namespace

Result<std::string> check_loadable(const std::string& path) {
  struct stat status {};
  std::error_code error;
  const std::string real = std::filesystem::canonical(path, error).string();
  if (error || ::stat(real.c_str(), &status) != 0)
    return Error(Errc::invalid, fmt::format("option plugin={}: {}", path, errno_text()));
  TRY(check_file(real, status));
  TRY(check_folder(real, true));
  return real;
}

Status check_writable_by_us_alone(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0)
    return errno == ENOENT ? check_folder(path, false) : Status(Error(errc_from_errno(errno), fmt::format("{}: {}", path, errno_text())));
  TRY(check_file(path, status));
  return check_folder(path, true);
}

}  // namespace varve::daemon
