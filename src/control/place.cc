#include "control/place.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/buffer.h"
#include "base/descriptor.h"
#include "base/errc.h"
#include "checkpoint/superblocks.h"
#include "control/mount_table.h"
#include "control/patience.h"
#include "format/superblock.h"
#include "io/stacking.h"
#include "remote/network_name.h"
#include "remote/open_device.h"

namespace varve::control {

namespace {

// A mount of a part, such as one snapshot, stands for the filesystem: only where all of it is mounted can be asked about it.
Place place_of(const MountEntry& mounted) {
  std::string directory = mounted.directory;
  if (!mounted.is_whole()) {
    const auto whole = find_believed_mount_of(mounted.source);
    if (whole && whole->is_whole() && whole->device == mounted.device) directory = whole->directory;
  }
  const Patience patience(directory);
  const bool dead = is_dead(directory);
  return {mounted.source, std::move(directory), dead};
}

// Does what has the status `upper` begin where `lower` does, as a loop device on an image, or a multipath device on one of its paths?
bool is_below(const struct stat& lower, const std::string& lower_name, const struct stat& upper, const std::string& upper_name) {
  const io::Layer top = io::stack_of(lower, lower_name).layers.front();
  const auto layers = io::stack_of(upper, upper_name).layers;
  return std::any_of(layers.begin() + 1, layers.end(), [&](const io::Layer& layer) { return layer.same_object(top) && layer.begin == 0; });
}

// Also under another name: /dev/disk/by-label/x is /dev/sdb1, and an image may be mounted through a loop device.
std::optional<MountEntry> find_mount_of_same(const std::string& path, const struct stat& file) {
  if (auto mounted = find_believed_mount_of(path)) return mounted;
  for (MountEntry& entry : varve_mounts()) {
    struct stat source {};
    if (!entry.is_believed() || ::stat(entry.source.c_str(), &source) != 0) continue;
    if (S_ISREG(file.st_mode) && S_ISBLK(source.st_mode) && is_below(file, path, source, entry.source)) return std::move(entry);
    if ((source.st_mode & S_IFMT) != (file.st_mode & S_IFMT)) continue;
    const bool same = S_ISBLK(file.st_mode) ? source.st_rdev == file.st_rdev
                                            : source.st_dev == file.st_dev && source.st_ino == file.st_ino;
    if (same) return std::move(entry);
  }
  return {};
}

// What is named lies in a mount whose daemon is gone: nothing below that can be looked up any more.
std::optional<Place> dead_place_above(const std::string& name) {
  std::error_code error;
  std::filesystem::path at = std::filesystem::absolute(name, error).lexically_normal();
  for (; !error && at != at.root_path(); at = at.parent_path())
    if (const auto mounted = find_mount(at); mounted && mounted->is_varve() && is_dead(at)) return place_of(*mounted);
  return {};
}

// The mount that a directory is in.
Result<Place> place_of_directory(const std::string& name, std::filesystem::path at) {
  for (;; at = at.parent_path()) {
    if (const auto mounted = find_mount(at)) {
      if (mounted->is_varve()) return place_of(*mounted);
      return Error(Errc::not_varve,
                   fmt::format("{}: a directory of {}, not a mounted Varve filesystem ({} is mounted at {})", name,
                               mounted->type, mounted->source, mounted->directory));
    }
    if (at == at.root_path())
      return Error(Errc::not_varve, fmt::format("{}: a directory, not a mounted Varve filesystem", name));
  }
}

struct Tag {
  bool is_uuid = false;
  std::string value;
};

std::optional<Tag> parse_tag(const std::string& name) {
  const auto equals = name.find('=');
  if (equals == std::string::npos) return {};
  const std::string key = name.substr(0, equals);
  std::string value = name.substr(equals + 1);
  if (value.size() >= 2 && value.front() == '"' && value.back() == '"') value = value.substr(1, value.size() - 2);
  if (key == "UUID") return Tag{true, value};
  if (key == "LABEL") return Tag{false, value};
  return {};
}

// It is only named at first: what else may stand there does something when it is opened, as a tape or a watchdog.
Descriptor open_storage(const std::string& path) {
  const Descriptor named(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!named || ::fstat(named.get(), &status) != 0 || (!S_ISREG(status.st_mode) && !S_ISBLK(status.st_mode))) return Descriptor();
  return Descriptor(::open(way_to(named.get()).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
}

bool fits(const Tag& tag, const std::string& path) {
  const Descriptor file = open_storage(path);
  AlignedBuffer block = AlignedBuffer::zeroed(kBlockSize);
  if (!file || ::pread(file.get(), block.data(), kBlockSize, 0) != static_cast<ssize_t>(kBlockSize)) return false;
  const auto super = format::decode_superblock(block.span());
  if (!super.ok()) return false;
  return tag.is_uuid ? ::strcasecmp(format::uuid_text(super->uuid).c_str(), tag.value.c_str()) == 0
                     : super->label == tag.value;
}

// Of several names of one storage the one to use: what is mounted, or else the uppermost.
std::vector<std::string> without_layers(const std::vector<std::string>& found) {
  const auto is_better = [](const std::string& a, const std::string& b) {
    struct stat first {}, second {};
    if (a == b || ::stat(a.c_str(), &first) != 0 || ::stat(b.c_str(), &second) != 0) return false;
    const bool above = is_below(second, b, first, a), below = is_below(first, a, second, b);
    if (!above && !below) return false;
    const bool first_is_mounted = find_believed_mount_of(a).has_value(), second_is_mounted = find_believed_mount_of(b).has_value();
    return first_is_mounted != second_is_mounted ? first_is_mounted : above;
  };
  std::vector<std::string> kept;
  for (const std::string& one : found)
    if (std::ranges::none_of(found, [&](const std::string& other) { return is_better(other, one); })) kept.push_back(one);
  return kept;
}

std::vector<std::string> candidates() {
  std::vector<std::string> paths;
  for (const MountEntry& entry : varve_mounts())
    if (entry.is_trusted()) paths.push_back(entry.source);
  std::ifstream partitions("/proc/partitions");
  for (std::string line; std::getline(partitions, line);) {
    std::istringstream words(line);
    std::string major, minor, blocks, device;
    if (!(words >> major >> minor >> blocks >> device) || major == "major") continue;
    const std::string path = "/dev/" + device;
    if (std::ranges::find(paths, path) == paths.end()) paths.push_back(path);
  }
  return paths;
}

// Nobody should be told to mount what is no Varve filesystem, or what a daemon in another namespace holds. What may not be read, or is on
// a server, is taken for one.
Status expect_varve(const Place& place) {
  if (remote::is_network_name(place.source)) return {};
  const auto device = remote::open_device(place.source, {.access = io::Access::read_only});
  if (device.fails_with(Errc::access) || device.fails_with(Errc::not_permitted)) return {};
  if (!device.ok()) return device.error();
  const auto found = checkpoint::read_superblocks(**device);
  return found.fails_with(Errc::not_varve) ? Status(found.error()) : Status();
}

}  // namespace

Result<std::string> resolve_tag(const std::string& name) {
  const auto tag = parse_tag(name);
  struct stat status {};
  if (!tag || ::lstat(name.c_str(), &status) == 0) return name;
  std::vector<std::string> found;
  for (std::string& path : candidates())
    if (fits(*tag, path)) found.push_back(std::move(path));
  if (found.size() > 1) found = without_layers(found);
  if (found.size() == 1) return found.front();
  if (found.empty())
    return Error(
        Errc::not_found,
        fmt::format(
            "{}: no mounted image and no block device that you can read has it; an image that is not mounted is only "
            "found by its path",
            name));
  return Error(Errc::invalid,
               fmt::format("{}: {} and {} both have it: name the device. If they are two disks, and not one under two names, "
                           "give one of them another with `varve {}`", name, found[0], found[1], tag->is_uuid ? "uuid" : "label"));
}

Result<Place> find_place(const std::string& word) {
  const std::string name = TRY(resolve_tag(word));
  if (remote::is_network_name(name)) {
    const std::string whole = remote::absolute_name(name);
    const auto mounted = find_believed_mount_of(whole);
    return mounted ? place_of(*mounted) : Place{whole, "", false};
  }
  const std::string path = resolve_mount_point(name);
  if (path.empty()) {
    if (auto dead = dead_place_above(name)) return *std::move(dead);
    return Error(Errc::not_found, fmt::format("{}: no such file, directory or device", word));
  }
  if (const auto mounted = find_mount(path); mounted && mounted->is_varve()) return place_of(*mounted);
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const int error = errno;
    if (const auto mounted = find_believed_mount_of(path)) return place_of(*mounted);
    if (auto dead = dead_place_above(path)) return *std::move(dead);
    if (error == ENOENT) return Error(Errc::not_found, fmt::format("{}: no such file, directory or device", word));
    return Error(errc_from_errno(error), fmt::format("{}: {}", word, std::strerror(error)));
  }
  if (S_ISDIR(status.st_mode)) return place_of_directory(word, path);
  if (const auto mounted = find_mount_of_same(path, status)) return place_of(*mounted);
  return Place{path, "", false};
}

Error daemon_gone(const Place& place) {
  return Error(
      Errc::io,
      fmt::format(
          "{0}: its daemon is gone (it has crashed or was killed); nothing that was synced is lost. `varve mount {1} "
          "{0}` clears the mount point and recovers, `varve umount {0}` only clears it",
          place.directory, place.source));
}

Result<std::string> find_unmounted(const std::string& name) {
  std::string found = TRY(resolve_tag(name));
  if (remote::is_network_name(found)) return found;
  const auto mounted = find_mount(resolve_mount_point(found));
  if (!mounted || !mounted->is_varve()) return found;
  return Error(Errc::in_use, fmt::format("{0}: {1} is mounted there: `varve umount {0}` first, then name {1}", found, mounted->source));
}

Result<std::string> find_mounted(const std::string& name) {
  const Place place = TRY(find_place(name));
  if (place.is_dead) return daemon_gone(place);
  if (place.is_mounted()) return place.directory;
  TRY(expect_varve(place));
  return Error(
      Errc::not_found,
      fmt::format("{0}: not mounted, and only a mounted filesystem can do this: varve mount {0} DIRECTORY", name));
}

}  // namespace varve::control
