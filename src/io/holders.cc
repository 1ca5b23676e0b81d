#include "io/holders.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "base/mounts.h"
#include "base/utf8.h"

namespace varve::io {

namespace {

namespace files = std::filesystem;

constexpr std::size_t kMostOfCommand = 120;  // bytes

// A process may end while its files are listed: then these are all.
std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (files::directory_iterator at(directory, error); !error && at != files::directory_iterator(); at.increment(error))
    names.push_back(at->path().filename().string());
  return names;
}

std::vector<pid_t> processes() {
  std::vector<pid_t> found;
  for (const std::string& name : names_in("/proc")) {
    pid_t pid = 0;
    const auto [end, failure] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (failure == std::errc() && end == name.data() + name.size() && pid != ::getpid()) found.push_back(pid);
  }
  return found;
}

std::string way_of(pid_t pid, const char* what) { return fmt::format("/proc/{}/{}", pid, what); }

std::string target_of(const std::string& link) {
  std::error_code error;
  return files::read_symlink(link, error).string();
}

std::vector<std::string> words_of(pid_t pid) {
  std::ifstream file(way_of(pid, "cmdline"));
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(std::move(word));
  return words;
}

std::string command_of(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? files::path(word).filename().string() : " " + word);
  if (text.size() > kMostOfCommand) text = text.substr(0, kMostOfCommand) + " ...";
  return printable(text);
}

// An update may have replaced the file: then the link says so behind the name.
bool is_varve(pid_t pid) {
  const std::string name = files::path(target_of(way_of(pid, "exe"))).filename().string();
  const std::string plain = name.substr(0, name.find(' '));
  return plain == "varve" || plain.ends_with(".varve");
}

std::vector<Mount> mounts_of(pid_t pid) { return mounts(way_of(pid, "mountinfo")); }

bool is_elsewhere(pid_t pid) { return target_of(way_of(pid, "ns/mnt")) != target_of("/proc/self/ns/mnt"); }

// The number of the filesystem behind an open /dev/fuse, as mountinfo has it. Older kernels do not tell it.
std::string device_behind(pid_t pid, const std::string& descriptor) {
  constexpr std::string_view kKey = "fuse_connection:";
  constexpr unsigned kMinorBits = 20;  // of the kernel's own numbers
  std::ifstream file(way_of(pid, "fdinfo/") + descriptor);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kKey)) continue;
    const auto number = std::strtoul(line.c_str() + kKey.size(), nullptr, 10);
    return fmt::format("{}:{}", number >> kMinorBits, number & ((1UL << kMinorBits) - 1));
  }
  return "";
}

// By what a daemon's mounts are known.
struct Signs {
  pid_t pid = 0;
  bool serves = false;             // it is a daemon
  std::string device;              // of its connection to the kernel; empty: not told
  std::vector<std::string> names;  // of what it has open, as it calls that, and the words of its command
};

Signs signs_of(pid_t pid) {
  Signs signs;
  signs.pid = pid;
  signs.names = words_of(pid);
  const std::string files_of = way_of(pid, "fd/");
  for (const std::string& number : names_in(files_of)) {
    signs.names.push_back(target_of(files_of + number));
    if (signs.names.back() != "/dev/fuse") continue;
    signs.serves = true;
    if (std::string device = device_behind(pid, number); !device.empty()) signs.device = std::move(device);
  }
  return signs;
}

// Nothing is asked of a filesystem: it may be one that hangs.
bool is_same(const std::string& path, const struct stat& file) {
  struct statx status {};
  if (::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_TYPE | STATX_INO, &status) != 0) return false;
  if ((status.stx_mode & S_IFMT) != (file.st_mode & S_IFMT)) return false;
  if (S_ISBLK(file.st_mode)) return makedev(status.stx_rdev_major, status.stx_rdev_minor) == file.st_rdev;
  return makedev(status.stx_dev_major, status.stx_dev_minor) == file.st_dev && status.stx_ino == file.st_ino;
}

bool holds(pid_t pid, const struct stat& file) {
  const std::string files_of = way_of(pid, "fd/");
  return std::ranges::any_of(names_in(files_of), [&](const std::string& number) { return is_same(files_of + number, file); });
}

Holder holder_of(pid_t pid) {
  Holder holder;
  holder.pid = pid;
  holder.command = command_of(words_of(pid));
  holder.is_varve = is_varve(pid);
  holder.is_elsewhere = is_elsewhere(pid);
  return holder;
}

// The name of an image that was renamed or removed is no longer the one that it was mounted by.
std::string plain_name(std::string name) {
  constexpr std::string_view kGone = " (deleted)";
  if (name.ends_with(kGone)) name.resize(name.size() - kGone.size());
  return name;
}

bool names_source(const Signs& signs, const Mount& mount) {
  return std::ranges::any_of(signs.names, [&](const std::string& name) { return plain_name(name) == mount.source; });
}

// The kernel gives a number again as soon as the mount is gone, and the daemon may still be ending then.
bool another_names_source(const Signs& signs, const Mount& mount) {
  return std::ranges::any_of(processes(), [&](pid_t pid) {
    if (pid == signs.pid || !is_varve(pid)) return false;
    const Signs other = signs_of(pid);
    return other.serves && other.device == signs.device && names_source(other, mount);
  });
}

bool fits(const Signs& signs, const Mount& mount) {
  if (!mount.is_varve()) return false;
  if (signs.device.empty()) return names_source(signs, mount);
  return mount.device == signs.device && (names_source(signs, mount) || !another_names_source(signs, mount));
}

// The last one that shows all of the filesystem, or else a part of it.
bool find_its_mount(const Signs& signs, const std::vector<Mount>& table, Holder& holder) {
  const Mount* found = nullptr;
  for (const Mount& mount : table)
    if (fits(signs, mount) && (!found || mount.root == "/" || found->root != "/")) found = &mount;
  if (!found) return false;
  holder.source = found->source;
  holder.directory = found->directory;
  holder.device = found->device;
  return true;
}

// A namespace that copied the mount may be all that keeps it: there it has been unmounted by nobody.
void find_its_mount_elsewhere(const Signs& signs, Holder& holder) {
  if (holder.is_elsewhere && find_its_mount(signs, mounts(), holder)) {
    holder.is_elsewhere = false;
    return;
  }
  std::vector<std::string> seen{target_of("/proc/self/ns/mnt"), target_of(way_of(holder.pid, "ns/mnt"))};
  for (const pid_t pid : processes()) {
    std::string space = target_of(way_of(pid, "ns/mnt"));
    if (space.empty() || std::ranges::find(seen, space) != seen.end()) continue;
    seen.push_back(std::move(space));
    if (!find_its_mount(signs, mounts_of(pid), holder)) continue;
    holder.is_elsewhere = true;
    return;
  }
}

}  // namespace

Holder mount_daemon(pid_t pid) {
  if (!is_varve(pid)) return {};
  const Signs signs = signs_of(pid);
  if (!signs.serves) return {};
  Holder holder = holder_of(pid);
  if (!find_its_mount(signs, mounts_of(pid), holder)) find_its_mount_elsewhere(signs, holder);
  return holder;
}

std::vector<Holder> mount_daemons() {
  std::vector<Holder> found;
  for (const pid_t pid : processes())
    if (Holder holder = mount_daemon(pid); holder.pid != 0) found.push_back(std::move(holder));
  return found;
}

std::vector<Holder> holders_of(const struct stat& file) {
  std::vector<Holder> found;
  for (const pid_t pid : processes()) {
    if (!holds(pid, file)) continue;
    Holder daemon = mount_daemon(pid);
    found.push_back(daemon.pid ? std::move(daemon) : holder_of(pid));
  }
  std::ranges::stable_partition(found, [](const Holder& holder) { return !holder.directory.empty(); });
  return found;
}

std::string describe(const Holder& holder) {
  std::string text = fmt::format("process {} ({})", holder.pid, holder.command);
  if (!holder.directory.empty()) text += fmt::format(", mounted at {}", printable(holder.directory));
  if (holder.is_elsewhere) text += " in another mount namespace";
  return text;
}

std::vector<Holder> keepers_of(const std::string& device, const std::string& source, std::size_t most) {
  std::vector<Holder> found;
  for (const pid_t pid : processes()) {
    if (found.size() == most) break;
    if (!is_elsewhere(pid)) continue;
    const auto shows = [&](const Mount& mount) { return mount.is_varve() && mount.device == device && mount.source == source; };
    if (std::ranges::any_of(mounts_of(pid), shows)) found.push_back(holder_of(pid));
  }
  return found;
}

}  // namespace varve::io
