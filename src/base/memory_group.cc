#include "base/memory_group.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <optional>
#include <sstream>
#include <vector>

#include <fmt/format.h>

#include "base/descriptor.h"
#include "base/mounts.h"

namespace varve {

namespace {

constexpr const char* kController = "memory";

// A process's list of groups names the place in each hierarchy: "4:memory:/a/b", and "0::/a/b" for version 2.
struct Membership {
  bool is_version_2 = false;
  std::string path;
};

bool has_word(std::string_view list, std::string_view word) {
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    if (list.substr(at, end - at) == word) return true;
    at = end + 1;
  }
  return false;
}

// All of a file; none where it cannot be read, and errno says why.
std::optional<std::string> text_in(const std::string& file) {
  const Descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!in) return {};
  std::string text;
  char piece[4096];
  for (;;) {
    const ssize_t got = ::read(in.get(), piece, sizeof piece);
    if (got < 0) return {};
    if (got == 0) return text;
    text.append(piece, static_cast<std::size_t>(got));
  }
}

std::vector<Membership> memberships(const std::string& text) {
  std::vector<Membership> found;
  std::istringstream table(text);
  for (std::string line; std::getline(table, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) found.push_back({true, line.substr(second + 1)});
    else if (has_word(controllers, kController)) found.push_back({false, line.substr(second + 1)});
  }
  return found;
}

// A mount of a hierarchy, as this process sees it.
std::optional<Mount> hierarchy(const std::string& mounts, bool is_version_2) {
  std::istringstream table(mounts);
  for (std::string line; std::getline(table, line);) {
    const auto mount = parse_mount(line);
    if (!mount) continue;
    if (is_version_2 ? mount->type == "cgroup2" : mount->type == "cgroup" && has_word(mount->options, kController)) return mount;
  }
  return {};
}

// A container may see only its own part of the hierarchy; what is above it cannot be read then. A group beside that part ("/..") is not
// visible at all: what can be read is the top of the part.
std::string below_mount(const Mount& mount, const std::string& path) {
  const std::string root = mount.root == "/" ? "" : mount.root;
  if (!path.starts_with(root) || path.starts_with("/..")) return "";
  const std::string rest = path.substr(root.size());
  return rest == "/" || (!rest.empty() && rest[0] != '/') ? "" : rest;
}

void look_at(const std::string& file, MemoryGroup& group) {
  const auto text = text_in(file);
  if (!text) {
    if (errno != ENOENT) group.is_known = false;  // the group at the top has no such file
    return;
  }
  if (text->starts_with("max")) return;
  std::uint64_t limit = 0;
  const auto read = std::from_chars(text->data(), text->data() + text->size(), limit);
  if (read.ec == std::errc::invalid_argument) group.is_known = false;
  constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 62;  // version 1 says the largest number of whole pages
  if (read.ec != std::errc() || limit >= kNoLimit || limit >= group.limit) return;
  group.limit = limit;
  group.file = file;
}

}  // namespace

MemoryGroup memory_group_of(pid_t process, const std::string& system) {
  MemoryGroup group;
  const std::string name = process ? std::to_string(process) : "self";
  const auto table = text_in(fmt::format("{}/proc/{}/cgroup", system, name));
  const auto mounts = text_in(system + "/proc/self/mountinfo");
  if (!table || !mounts) return group;
  group.is_known = true;
  for (const Membership& member : memberships(*table)) {
    const auto mount = hierarchy(*mounts, member.is_version_2);
    if (!mount) continue;
    const std::string top = system + mount->directory;
    for (std::string path = below_mount(*mount, member.path);; path.resize(path.rfind('/'))) {
      if (member.is_version_2) {
        look_at(top + path + "/memory.max", group);
        look_at(top + path + "/memory.high", group);  // above that its processes are slowed down until they hardly run
      } else {
        look_at(top + path + "/memory.limit_in_bytes", group);
      }
      if (path.empty()) break;
    }
  }
  return group;
}

}  // namespace varve
