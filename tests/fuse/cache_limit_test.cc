// The limit of what the kernel may hold back of a mount is written to a folder of files, as those of its backing device are.
#include "daemon/cache_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace varve::fuse {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::uint64_t kOfAll = 1000 * kMiB;

class CacheLimitTest : public ::testing::Test {
 protected:
  CacheLimitTest() : folder_(testing::TempDir() + "cache-limit-" + std::to_string(::getpid()) + "/") {
    std::filesystem::create_directory(folder_);
    put("max_ratio", "1");
  }
  ~CacheLimitTest() override { std::filesystem::remove_all(folder_); }

  void put(const char* name, const std::string& text) { std::ofstream(folder_ + name) << text; }
  std::string get(const char* name) {
    std::string text;
    std::ifstream(folder_ + name) >> text;
    return text;
  }

  const std::string folder_;
};

TEST_F(CacheLimitTest, IsInBytesWhereTheKernelTakesThese) {
  put("max_bytes", "600000000");
  put("strict_limit", "1");
  daemon::CacheLimit limit(folder_, kOfAll);
  EXPECT_EQ(get("max_ratio"), "60");
  EXPECT_EQ(get("strict_limit"), "0");
  limit.set(5000);
  EXPECT_EQ(get("max_bytes"), "5000");
  EXPECT_EQ(get("strict_limit"), "1");
  limit.set(UINT64_MAX);
  EXPECT_EQ(get("strict_limit"), "0");
}

// Linux 6.1 has neither of the two: without a narrow limit root's mount took far more than there was room for.
TEST_F(CacheLimitTest, IsInHundredthsElsewhere) {
  daemon::CacheLimit limit(folder_, kOfAll);
  EXPECT_EQ(get("max_ratio"), "60") << "there is room";
  limit.set(UINT64_MAX);
  EXPECT_EQ(get("max_ratio"), "60");
  limit.set(300 * kMiB);
  EXPECT_EQ(get("max_ratio"), "30");
  limit.set(4 * kMiB);
  EXPECT_EQ(get("max_ratio"), "1");
  limit.set(700 * kMiB);
  EXPECT_EQ(get("max_ratio"), "60");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "max_bytes"));
}

TEST_F(CacheLimitTest, IsNarrowWhereTheKernelTellsNothing) {
  daemon::CacheLimit limit(folder_, 0);
  limit.set(4 * kMiB);
  EXPECT_EQ(get("max_ratio"), "1");
}

TEST(DirtyThreshold, IsTold) { EXPECT_GT(daemon::dirty_threshold(), kMiB); }

}  // namespace
}  // namespace varve::fuse
