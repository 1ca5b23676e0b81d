#include "varve/care/scrub_names.h"

#include <dirent.h>
#include <sys/stat.h>

#include <cstring>
#include <memory>

namespace varve::tool {

namespace {

struct stat status_of(const std::string& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) status = {};
  return status;
}

}  // namespace

std::map<std::uint64_t, std::vector<std::string>> find_names(const std::string& directory,
                                                             const std::set<std::uint64_t>& inodes) {
  std::map<std::uint64_t, std::vector<std::string>> names;
  const struct stat top = status_of(directory);
  if (inodes.contains(top.st_ino)) names[top.st_ino].push_back(directory);
  std::vector<std::string> waiting{directory};
  while (!waiting.empty()) {
    const std::string path = std::move(waiting.back());
    waiting.pop_back();
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(path.c_str()), ::closedir);
    if (!stream) continue;
    while (const dirent* entry = ::readdir(stream.get())) {
      if (!std::strcmp(entry->d_name, ".") || !std::strcmp(entry->d_name, "..")) continue;
      const std::string child = (path.ends_with('/') ? path : path + '/') + entry->d_name;
      if (inodes.contains(entry->d_ino)) names[entry->d_ino].push_back(child);
      if (entry->d_type == DT_DIR && status_of(child).st_dev == top.st_dev) waiting.push_back(child);
    }
  }
  return names;
}

}  // namespace varve::tool
