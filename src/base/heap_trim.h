// Gives back to the kernel what the heap and the pool of blocks (block_pool.h) have freed and keep. Each thread that allocates has an
// arena of its own, and what one arena has free no other one uses: a process with a bound would outgrow it with most of its heap unused.
// Belongs to one thread.
#pragma once

#include <cstddef>

#include "base/descriptor.h"

namespace varve {

class HeapTrim {
 public:
  // bound: bytes that the process may take; 0: there is none.
  explicit HeapTrim(std::size_t bound);
  // Call it now and then. It gives back what is unused once the process takes more than half of the bound, and then whenever it takes
  // a sixteenth of it more than after the last time. Returns whether it did.
  bool look();
  void bound(std::size_t bytes);  // another bound, where there is one; what was kept so far may be too much for it
  static void give_back();        // what is unused, whatever the process takes. Any thread

 private:
  std::size_t resident_bytes() const;  // 0: not known

  std::size_t bound_;
  std::size_t kept_ = 0;  // after the last time
  Descriptor statm_;
};

}  // namespace varve
