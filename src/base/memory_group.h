// How much memory the control groups of a process let it take (cgroup versions 1 and 2): in a container less than the machine has.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace varve {

struct MemoryGroup {
  static constexpr std::uint64_t kNone = UINT64_MAX;

  std::uint64_t limit = kNone;  // bytes: the smallest of its group and all groups above that can be seen from here; kNone: there is none
  std::string file;             // that says so; empty: none does
  bool is_known = false;        // all of it could be read; otherwise there may be a smaller limit
};

// The group of a process; 0 means this process. A group that lacks the file for a limit has none, as the one at the top. `system` stands
// in front of /proc and of all mount points, for tests.
MemoryGroup memory_group_of(pid_t process = 0, const std::string& system = "");

}  // namespace varve
