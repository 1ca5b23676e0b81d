#include "base/heap_trim.h"

#include <fcntl.h>
#include <malloc.h>

#include <algorithm>

#include "base/block_pool.h"
#include "base/leading_numbers.h"
#include "base/page_size.h"

namespace varve {

HeapTrim::HeapTrim(std::size_t bound) : bound_(bound) {
  if (bound) statm_ = Descriptor(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
}

std::size_t HeapTrim::resident_bytes() const {
  std::uint64_t pages[2];  // of address space, resident
  read_leading_numbers(statm_.get(), pages);
  return pages[1] * kernel_page_bytes();
}

void HeapTrim::give_back() {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
  (void)BlockPool::of_process().trim();
}

void HeapTrim::bound(std::size_t bytes) {
  if (!bound_ || bytes == bound_) return;
  bound_ = bytes;
  kept_ = 0;
}

bool HeapTrim::look() {
  const std::size_t taken = resident_bytes();
  kept_ = std::min(kept_, taken);
  if (taken <= bound_ / 2 || taken <= kept_ + bound_ / 16) return false;
  give_back();
  kept_ = resident_bytes();
  return true;
}

}  // namespace varve
