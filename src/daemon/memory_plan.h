// How the bound of a mount's memory is shared out.
#pragma once

#include <cstddef>

#include "base/result.h"

namespace varve::fuse {

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

// Under a small bound the allocator keeps little of what has been freed. Before any thread is started.
void thrift_heap(std::size_t bound);

}  // namespace varve::fuse
