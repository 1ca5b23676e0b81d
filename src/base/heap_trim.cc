#include "base/heap_trim.h"

#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>

namespace varve {

HeapTrim::HeapTrim(std::size_t bound) : bound_(bound) {
  if (bound) statm_ = Descriptor(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
}

std::size_t HeapTrim::resident_bytes() const {
  char text[96];  // "<pages of address space> <pages resident> …"
  const ssize_t got = statm_ ? ::pread(statm_.get(), text, sizeof text, 0) : -1;
  if (got <= 0) return 0;
  const char* const end = &text[got];
  const char* const space = std::find(static_cast<const char*>(text), end, ' ');
  std::size_t pages = 0;
  if (space != end) std::from_chars(space + 1, end, pages);
  return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

bool HeapTrim::look() {
  const std::size_t taken = resident_bytes();
  kept_ = std::min(kept_, taken);
  if (taken <= bound_ / 2 || taken <= kept_ + bound_ / 16) return false;
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
  kept_ = resident_bytes();
  return true;
}

}  // namespace varve
