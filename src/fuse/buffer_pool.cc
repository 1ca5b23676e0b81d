#include "fuse/buffer_pool.h"

#include <sys/mman.h>

#include <new>

namespace varve::fuse {

namespace {

constexpr std::array<std::size_t, BufferPool::kSizes.size()> kKept = {64, 16, 8, 4};  // about 8 MiB

}  // namespace

BufferPool::~BufferPool() {
  for (unsigned shelf = 0; shelf < shelves_.size(); ++shelf)
    for (std::byte* data : shelves_[shelf]) ::munmap(data, kSizes[shelf]);
}

Lease BufferPool::take(std::size_t bytes) {
  unsigned shelf = 0;
  while (shelf < kSizes.size() && kSizes[shelf] < bytes) ++shelf;
  if (shelf == kSizes.size()) throw std::bad_alloc();
  std::byte* data = nullptr;
  if (auto& free = shelves_[shelf]; !free.empty()) {
    data = free.back();
    free.pop_back();
  } else {
    void* mapped = ::mmap(nullptr, kSizes[shelf], PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    data = static_cast<std::byte*>(mapped);
  }
  leased_bytes_ += kSizes[shelf];
  return {this, data, shelf};
}

void BufferPool::give_back(std::byte* data, unsigned shelf) {
  leased_bytes_ -= kSizes[shelf];
  if (shelves_[shelf].size() < kKept[shelf]) {
    shelves_[shelf].push_back(data);
  } else {
    ::munmap(data, kSizes[shelf]);
  }
}

}  // namespace varve::fuse
