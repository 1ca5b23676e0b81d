// What a thread has freed stays in its arena, until it is given back.
#include "base/heap_trim.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

namespace varve {
namespace {

constexpr std::size_t kMiB = 1u << 20;

std::size_t resident() {
  std::size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;
  return pages * 4096;
}

// 64 MiB in small pieces; the last one stays, so that the end of the heap is in use.
std::unique_ptr<char[]> allocate_and_free() {
  std::unique_ptr<char[]> last;
  std::thread([&last] {
    std::vector<std::unique_ptr<char[]>> pieces;
    for (std::size_t i = 0; i < 64 * 1024; ++i) {
      pieces.push_back(std::make_unique<char[]>(1000));
      std::memset(pieces.back().get(), 1, 1000);
    }
    last = std::move(pieces.back());
  }).join();
  return last;
}

TEST(HeapTrim, GivesBackWhatIsUnusedBeforeTheBoundIsReached) {
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
  GTEST_SKIP() << "a sanitizer has a heap of its own";
#endif
#ifdef __has_feature
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "a sanitizer has a heap of its own";
#endif
#endif
  const auto last = allocate_and_free();
  const std::size_t before = resident();
  ASSERT_GT(before, 60 * kMiB) << "the heap has given it back by itself";
  HeapTrim trim(96 * kMiB);
  EXPECT_TRUE(trim.look());
  EXPECT_LT(resident(), before - 40 * kMiB);
  EXPECT_FALSE(trim.look()) << "nothing has come since";
}

TEST(HeapTrim, LooksAgainForAnotherBound) {
  HeapTrim trim(64 * resident());
  EXPECT_FALSE(trim.look());
  trim.bound(resident());
  EXPECT_TRUE(trim.look());
  EXPECT_FALSE(trim.look()) << "nothing has come since";
  trim.bound(resident() / 2);
  EXPECT_TRUE(trim.look()) << "what was kept may be too much now";
}

TEST(HeapTrim, LeavesTheHeapAloneWhereThereIsNoBoundOrItIsFar) {
  const auto last = allocate_and_free();
  HeapTrim without(0), far(64 * resident());
  EXPECT_FALSE(without.look());
  EXPECT_FALSE(far.look());
}

}  // namespace
}  // namespace varve
