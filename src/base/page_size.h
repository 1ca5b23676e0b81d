// The page of the kernel that runs. It need not be as large as a block: some ARM machines have pages of 16 or 64 KiB.
#pragma once

#include <unistd.h>

#include <cstddef>

namespace varve {

inline std::size_t kernel_page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

}  // namespace varve
