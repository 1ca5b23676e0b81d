// What a process does that finds no memory: a failed allocation is one call of the new-handler.
#include "base/memory_reserve.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

namespace varve {
namespace {

constexpr std::size_t kBytes = 1u << 20;

TEST(MemoryReserve, IsGivenBackOnceAndTheOwnerHearsOfIt) {
  int told = 0;
  const MemoryReserve reserve(kBytes, [&told] { ++told; });
  EXPECT_EQ(told, 0);
  meet_lack_of_memory();
  EXPECT_EQ(told, 1);
  meet_lack_of_memory();  // another thread that found none: it tries again
  EXPECT_EQ(told, 1);
}

TEST(MemoryReserve, GoesWithItsOwner) {
  { const MemoryReserve reserve(kBytes, [] {}); }
  EXPECT_THROW(meet_lack_of_memory(), std::bad_alloc);
  const MemoryReserve another(kBytes, [] {});
  EXPECT_NO_THROW(meet_lack_of_memory());
}

[[noreturn]] void go_on_without_memory() {
  const MemoryReserve reserve(kBytes, [] {});
  for (;;) meet_lack_of_memory();
}

TEST(MemoryReserve, AProcessThatCannotGoOnEndsWithAMessage) { EXPECT_DEATH(go_on_without_memory(), "out of memory.*in the log"); }

}  // namespace
}  // namespace varve
