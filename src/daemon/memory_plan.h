// How the bound of a mount's memory is shared out.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/memory_group.h"
#include "base/result.h"

namespace varve::daemon {

struct MemoryPlan {
  std::size_t bound = 0;
  unsigned threads = 0;           // that serve
  std::size_t request_bytes = 0;  // ServerOptions::request_bytes
  std::size_t large_bytes = 0;    // for LargeMemory: a part of those
  std::size_t engine_bytes = 0;   // fs::Options::memory_bytes
};

// Of `bound` bytes for the whole process, as the kernel counts them (VmHWM); 0: 256 MiB, or what the threads need.
// `threads`: 0 for one per CPU, at most ServerOptions::kMaxThreads, and fewer where memory is short. Errc::invalid: the bound
// cannot hold so many; the message says the least that can.
Result<MemoryPlan> plan_memory(std::size_t bound, unsigned threads);

// The bound where nobody has chosen one: the usual one, or half of what the process's control groups may take. The other half is for what
// the kernel keeps for them, and for other processes. As much as the threads need at least.
std::size_t usual_bound(const MemoryGroup& group, unsigned threads);
// Another plan for a mount with `plan`, whose group is like this now; none if nothing changes. Its threads stay as they are. So does a
// bound that the user has `chosen` (0: none). What cannot be read says nothing.
std::optional<MemoryPlan> followed(const MemoryPlan& plan, const MemoryGroup& group, std::size_t chosen);
// Not too close to the limit of the group, to which other memory counts, too.
inline bool fits(std::size_t bound, const MemoryGroup& group) { return group.limit / 4 * 3 >= bound; }
// "the control group may take 64 MiB (FILE)".
std::string text_of(const MemoryGroup& group);

// Under a small bound the allocator keeps little of what has been freed. Before any thread is started.
void thrift_heap(std::size_t bound);

}  // namespace varve::daemon
