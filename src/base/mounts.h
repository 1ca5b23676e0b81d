// The kernel's list of mounts.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace varve {

struct Mount {
  std::string id;  // of the mount itself
  std::string device;  // "major:minor"
  std::string root;  // what of the filesystem is shown: "/" is all of it, anything else a bind mount
  std::string directory;
  std::string type;  // "fuse.varve", "ext4"…
  std::string source;  // device or image
  std::string options;  // of the filesystem

  bool is_varve() const { return type == "fuse.varve" || type == "fuseblk.varve"; }
};

// Those of this process's mount namespace, the oldest first. Looks at no mount point, since that may be dead.
std::vector<Mount> mounts(const std::string& of = "/proc/self/mountinfo");

// A line of /proc/self/mountinfo; none: it is not one.
std::optional<Mount> parse_mount(const std::string& line);
// What the lists of mounts and swaps write as \ooo, as it is.
std::string unescape_octal(const std::string& text);

}  // namespace varve
