#include "fuse/protocol/privilege.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace varve::fuse {

namespace {

// True, too, where the kernel has no user namespaces.
bool is_in_our_user_namespace(std::uint32_t task) {
  struct stat ours {}, theirs {};
  if (::stat("/proc/self/ns/user", &ours) != 0) return true;
  if (::stat(fmt::format("/proc/{}/ns/user", task).c_str(), &theirs) != 0) return false;
  return ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// Of what the kernel says of a task: what stands behind the field's name. Empty if there is no such task.
std::string status_field(std::uint32_t task, std::string_view name) {
  std::ifstream status(fmt::format("/proc/{}/status", task));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(name)) return line.substr(name.size());
  return "";
}

std::uint64_t effective_capabilities(std::uint32_t task) { return std::strtoull(status_field(task, "CapEff:").c_str(), nullptr, 16); }

}  // namespace

bool has_capability(std::uint32_t task, int capability) {
  return (effective_capabilities(task) >> capability & 1) != 0 && is_in_our_user_namespace(task);
}

CallerIds caller_ids(CallerIds of_message, std::uint32_t task) {
  if (of_message.uid != kUntold && of_message.gid != kUntold) return of_message;
  const auto used_for_files = [task](std::string_view name) {
    std::istringstream numbers(status_field(task, name));  // real, effective, saved, and of filesystems
    std::uint32_t real = 0, effective = 0, saved = 0, id = 0;
    return numbers >> real >> effective >> saved >> id ? id : kUntold;
  };
  return {used_for_files("Uid:"), used_for_files("Gid:")};
}

std::vector<std::uint32_t> further_groups(std::uint32_t task) {
  std::istringstream numbers(status_field(task, "Groups:"));
  std::vector<std::uint32_t> groups;
  for (std::uint32_t group = 0; numbers >> group;) groups.push_back(group);
  return groups;
}

}  // namespace varve::fuse
