// How a process that holds data of others meets lack of memory: in one way.
//
// What a message needs is had before it is taken from the kernel (fuse/transport/transport.h). All other code allocates without a
// thought for failure: no operation has a path of its own for it. When an allocation fails, the reserve is given back, which is
// enough to end in good order, and the process is told to do so: the log has everything then. If that does not help either, the
// process ends with a message, and the log has what a power cut would have left.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace varve {

// One per process; installs the new-handler.
class MemoryReserve {
 public:
  // `lacking`: called once, by the thread that found no memory, under any lock: it must neither allocate nor wait.
  MemoryReserve(std::size_t bytes, std::function<void()> lacking);
  ~MemoryReserve();
  MemoryReserve(const MemoryReserve&) = delete;
  MemoryReserve& operator=(const MemoryReserve&) = delete;

 private:
  static void on_lack();
  void give_back();

  const std::size_t bytes_;
  const std::function<void()> lacking_;
  std::atomic<void*> memory_;
  std::atomic<unsigned> tries_{0};  // since it was given back
};

// For allocators of our own, as operator new does it: returns if it may be tried again, throws std::bad_alloc where there is no reserve.
void meet_lack_of_memory();

}  // namespace varve
