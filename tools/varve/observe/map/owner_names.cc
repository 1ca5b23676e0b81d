#include "varve/observe/map/owner_names.h"

#include <fmt/format.h>

#include <set>

#include "varve/care/scrub_names.h"

namespace varve::tool {

std::map<Ino, std::string> owner_names(const std::vector<Ino>& owners, const std::string& directory) {
  std::map<Ino, std::string> names;
  if (directory.empty() || owners.empty()) return names;
  std::set<std::uint64_t> inodes;
  for (const Ino owner : owners) inodes.insert(owner.v);
  for (const auto& [inode, paths] : find_names(directory, inodes))
    names[Ino{inode}] = paths.front() + (paths.size() > 1 ? fmt::format(" (one of {} names)", paths.size()) : "");
  return names;
}

}  // namespace varve::tool
