// What a caller may do beyond what the message says of it, which is user, group and number.
#pragma once

#include <cstdint>
#include <vector>

namespace varve::fuse {

// A capability (CAP_SYS_ADMIN…) in this process's user namespace: uid 0 of a container may be without it, or have it only in a
// namespace of its own. The caller must be waiting for us, or its number may be another's. False if it cannot be looked up, as from
// outside of our pid namespace.
bool has_capability(std::uint32_t task, int capability);

// User and group as which a task uses filesystems.
struct CallerIds {
  std::uint32_t uid;
  std::uint32_t gid;
};
inline constexpr std::uint32_t kUntold = ~std::uint32_t{0};

// Returns those of a message. Where it does not tell them (Wishes::allow_idmap), /proc has those of the task, which takes a while. Both are
// kUntold if they cannot be looked up: nobody's.
CallerIds caller_ids(CallerIds of_message, std::uint32_t task);

// The groups that it has besides that of the message. None if they cannot be looked up.
std::vector<std::uint32_t> further_groups(std::uint32_t task);

}  // namespace varve::fuse
