#include "daemon/spare_cpu.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <string>

namespace varve::fuse {
namespace {

constexpr std::uint64_t kMs = 1'000'000;

// A file in place of the kernel's, whose counts a test sets.
class SpareCpu : public testing::Test {
 protected:
  void SetUp() override { set(1000, 50); }
  void TearDown() override { std::filesystem::remove(file_); }
  void set(std::uint64_t idle, std::uint64_t waiting) const {
    std::ofstream(file_) << fmt::format("cpu  7 8 9 {} {} 1 2 3 0 0\ncpu0 1 1 1 1 1\n", idle, waiting);
  }
  std::uint64_t ticks_of(std::uint64_t ms) const { return ms * static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)) / 1000; }
  const std::string file_ = testing::TempDir() + fmt::format("varve-spare-{}", ::getpid());
};

TEST_F(SpareCpu, IsLeftWhereAQuarterOfACpuIsIdle) {
  daemon::SpareCpu cpu(0, file_.c_str());
  set(1000 + ticks_of(300), 50);
  EXPECT_TRUE(cpu.was_left(1000 * kMs));
  set(1000 + ticks_of(500), 50);
  EXPECT_FALSE(cpu.was_left(2000 * kMs)) << "a fifth";
  set(1000 + ticks_of(500), 50 + ticks_of(400));
  EXPECT_TRUE(cpu.was_left(3000 * kMs)) << "a CPU that waits for a device is idle";
}

TEST_F(SpareCpu, AnswersAsBeforeUntilItsWindowIsOver) {
  daemon::SpareCpu cpu(0, file_.c_str());
  EXPECT_TRUE(cpu.was_left(99 * kMs)) << "nothing is known yet";
  EXPECT_FALSE(cpu.was_left(100 * kMs));
  set(1000 + ticks_of(1000), 50);
  EXPECT_FALSE(cpu.was_left(199 * kMs));
  EXPECT_TRUE(cpu.was_left(200 * kMs));
}

TEST_F(SpareCpu, IsLeftWhereTheKernelDoesNotTell) {
  daemon::SpareCpu without(0, "/varve-no-such-file");
  EXPECT_TRUE(without.was_left(1000 * kMs));
  daemon::SpareCpu cpu(0, file_.c_str());
  std::ofstream(file_) << "something else\n";
  EXPECT_TRUE(cpu.was_left(1000 * kMs));
}

}  // namespace
}  // namespace varve::fuse
