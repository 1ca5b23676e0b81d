#include "heap_objects.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {
std::atomic<std::uint64_t> made{0};
}

std::uint64_t heap_objects() { return made.load(std::memory_order_relaxed); }

void* operator new(std::size_t bytes) {
  made.fetch_add(1, std::memory_order_relaxed);
  if (void* const memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
