#include "control/mount_table.h"

#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

namespace varve::control {

namespace {

// Of a FUSE filesystem, whose options say user_id=1000.
std::optional<unsigned> user_of(const std::string& options) {
  constexpr std::string_view kKey = ",user_id=";
  const auto at = ("," + options).find(kKey);
  if (at == std::string::npos) return {};
  return static_cast<unsigned>(std::strtoul(options.c_str() + at + kKey.size() - 1, nullptr, 10));
}

std::string canonical(const std::string& path) {
  struct Free {
    void operator()(char* p) const { std::free(p); }
  };
  const std::unique_ptr<char, Free> resolved(::realpath(path.c_str(), nullptr));
  return resolved ? resolved.get() : "";
}

template <class Condition>
std::vector<MountEntry> find_all(Condition&& condition) {
  std::vector<MountEntry> found;
  for (Mount& mount : mounts()) {
    const bool read_only = mount.options == "ro" || mount.options.starts_with("ro,");
    const auto user = user_of(mount.options);
    MountEntry entry{std::move(mount), read_only, user};
    if (condition(entry)) found.push_back(std::move(entry));
  }
  return found;
}

template <class Condition>
std::optional<MountEntry> find_last(Condition&& condition) {
  auto found = find_all(condition);
  return found.empty() ? std::nullopt : std::optional(std::move(found.back()));
}

}  // namespace

std::optional<MountEntry> find_mount(const std::string& directory) {
  return find_last([&](const MountEntry& entry) { return entry.directory == directory; });
}

namespace {

template <class Condition>
std::optional<MountEntry> find_whole_first(Condition&& is_of) {
  auto whole = find_last([&](const MountEntry& entry) { return is_of(entry) && entry.is_whole(); });
  return whole ? whole : find_last(is_of);
}

}  // namespace

std::optional<MountEntry> find_mount_of(const std::string& source) {
  return find_whole_first([&](const MountEntry& entry) { return entry.is_varve() && entry.source == source; });
}

std::optional<MountEntry> find_believed_mount_of(const std::string& source) {
  return find_whole_first([&](const MountEntry& entry) { return entry.is_varve() && entry.source == source && entry.is_believed(); });
}

bool MountEntry::is_trusted() const { return !user || *user == 0 || *user == ::geteuid(); }

bool MountEntry::is_believed() const {
  struct stat file {};
  return is_trusted() || (::stat(source.c_str(), &file) == 0 && file.st_uid == *user);
}

bool is_dead(const std::string& directory) {
  struct statfs space {};  // stat(2) would be answered from the kernel's cache
  return ::statfs(directory.c_str(), &space) != 0 && (errno == ENOTCONN || errno == ECONNABORTED);
}

std::vector<MountEntry> varve_mounts() {
  return find_all([](const MountEntry& entry) { return entry.is_varve() && entry.is_whole(); });
}

std::optional<MountEntry> find_other_mount(const MountEntry& mounted) {
  return find_last([&](const MountEntry& entry) { return entry.device == mounted.device && entry.id != mounted.id; });
}

std::vector<MountEntry> mounts_of(const std::string& device) {
  return find_all([&](const MountEntry& entry) { return entry.device == device; });
}

std::string resolve_mount_point(const std::string& directory) {
  // A symbolic link to a mount point is followed, unless what it leads to is dead.
  if (std::string whole = canonical(directory); !whole.empty()) return whole;
  std::filesystem::path path(directory);
  if (!path.has_filename()) path = path.parent_path();
  if (path.filename() == "." || path.filename() == "..") return "";
  const std::string parent = canonical(path.has_parent_path() ? path.parent_path().string() : ".");
  if (parent.empty()) return "";
  return (std::filesystem::path(parent) / path.filename()).string();
}

}  // namespace varve::control
