#include "fuse/transport/large_memory.h"

#include <sys/mman.h>

#include "base/types.h"

namespace varve::fuse {

namespace {
constexpr std::size_t kHugePage = 2u << 20;
}

LargeMemory::LargeMemory(std::size_t bytes) {
  const std::size_t size = round_up(bytes, kHugePage);
  if (!size) return;
  void* mapped = ::mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return;
  auto* start = static_cast<std::byte*>(mapped);
  auto* aligned = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(start), kHugePage));
  if (aligned != start) ::munmap(start, static_cast<std::size_t>(aligned - start));
  if (std::byte* end = start + size + kHugePage; aligned + size != end)
    ::munmap(aligned + size, static_cast<std::size_t>(end - aligned) - size);
  ::madvise(aligned, size, MADV_HUGEPAGE);
  for (std::size_t at = 0; at < size; at += kBlockSize) aligned[at] = std::byte{};
  data_ = aligned;
  size_ = size;
}

LargeMemory::~LargeMemory() {
  if (data_) ::munmap(data_, size_);
}

}  // namespace varve::fuse
