// Which names in a mounted filesystem belong to inodes of which only the numbers are known.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace varve::tool {

// Walks everything below `directory` that the caller may read and that is on the same filesystem; costs one readdir(3)
// per directory and no stat of files. Paths begin with `directory`; an inode without a name is not in the result.
std::map<std::uint64_t, std::vector<std::string>> find_names(const std::string& directory,
                                                             const std::set<std::uint64_t>& inodes);

}  // namespace varve::tool
