#include "fuse/protocol/privilege.h"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
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

std::uint64_t effective_capabilities(std::uint32_t task) {
  constexpr std::string_view kField = "CapEff:";
  std::ifstream status(fmt::format("/proc/{}/status", task));
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(kField)) return std::strtoull(line.c_str() + kField.size(), nullptr, 16);
  return 0;
}

}  // namespace

bool has_capability(std::uint32_t task, int capability) {
  return (effective_capabilities(task) >> capability & 1) != 0 && is_in_our_user_namespace(task);
}

}  // namespace varve::fuse
