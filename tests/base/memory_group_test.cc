// A process is told of the limits of its control groups, on made-up trees of /proc and /sys.
#include "base/memory_group.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace varve {
namespace {

namespace files = std::filesystem;

constexpr const char* kVersion1 = "40 30 0:26 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n";
constexpr const char* kVersion2 = "41 30 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n";

class MemoryGroupTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (files::temp_directory_path() / "varve-groups.XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    top_ = pattern;
  }
  void TearDown() override { files::remove_all(top_); }

  void put(const std::string& name, const std::string& text) {
    const files::path path = top_.string() + name;
    files::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  // open() fails, also for root.
  void make_unreadable(const std::string& name) {
    const files::path path = top_.string() + name;
    files::remove(path);
    files::create_directories(path.parent_path());
    files::create_symlink(path.filename(), path);
  }
  // open() succeeds, and read() fails.
  void make_folder(const std::string& name) {
    files::remove(top_.string() + name);
    files::create_directories(top_.string() + name);
  }
  void mounted(const std::string& table) { put("/proc/self/mountinfo", "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + table); }
  void belongs(const std::string& table, const std::string& process = "self") { put("/proc/" + process + "/cgroup", table); }
  MemoryGroup look(pid_t process = 0) { return memory_group_of(process, top_.string()); }

  files::path top_;
};

TEST_F(MemoryGroupTest, WithoutGroupsThereIsNoLimit) {
  EXPECT_EQ(look().limit, MemoryGroup::kNone);
  EXPECT_EQ(look().file, "");
  EXPECT_FALSE(look().is_known);
  mounted("");
  belongs("0::/somewhere\n");
  EXPECT_EQ(look().limit, MemoryGroup::kNone);
  EXPECT_TRUE(look().is_known);
}

TEST_F(MemoryGroupTest, Version2) {
  mounted(kVersion2);
  belongs("0::/a/b\n");
  put("/sys/fs/cgroup/a/b/memory.max", "67108864\n");
  EXPECT_EQ(look().limit, 64U << 20);
  EXPECT_EQ(look().file, top_.string() + "/sys/fs/cgroup/a/b/memory.max");
}

TEST_F(MemoryGroupTest, TheSmallestOnTheWayToTheTopCounts) {
  mounted(kVersion2);
  belongs("0::/a/b/c\n");
  put("/sys/fs/cgroup/a/b/c/memory.max", "max\n");
  put("/sys/fs/cgroup/a/b/memory.max", "200000000\n");
  put("/sys/fs/cgroup/a/memory.max", "100000000\n");
  EXPECT_EQ(look().limit, 100000000U);
  put("/sys/fs/cgroup/a/b/memory.high", "90000000\n");
  EXPECT_EQ(look().limit, 90000000U);
}

TEST_F(MemoryGroupTest, AGroupWithALikeNameBesideItDoesNot) {
  mounted(kVersion2);
  belongs("0::/a\n");
  put("/sys/fs/cgroup/a/memory.max", "max\n");
  put("/sys/fs/cgroup/ab/memory.max", "1000000\n");
  put("/sys/fs/cgroup/a/below/memory.max", "1000000\n");
  EXPECT_EQ(look().limit, MemoryGroup::kNone);
}

TEST_F(MemoryGroupTest, Version1) {
  mounted(kVersion1);
  belongs("5:cpu,cpuacct:/other\n4:blkio,memory:/a\n1:name=systemd:/x\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(look().limit, MemoryGroup::kNone);
  put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "50000000\n");
  put("/sys/fs/cgroup/memory/other/memory.limit_in_bytes", "1000\n");
  EXPECT_EQ(look().limit, 50000000U);
}

TEST_F(MemoryGroupTest, BothVersionsBesideEachOther) {
  mounted(std::string(kVersion1) + "42 30 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  belongs("4:memory:/a\n0::/b\n");
  put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "50000000\n");
  EXPECT_EQ(look().limit, 50000000U);
  put("/sys/fs/cgroup/unified/b/memory.max", "40000000\n");
  EXPECT_EQ(look().limit, 40000000U);
}

// A container of version 1 without a namespace of groups: the paths are the host's, but only its own part is mounted.
TEST_F(MemoryGroupTest, APartOfTheHierarchyIsMounted) {
  mounted("40 30 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  belongs("4:memory:/docker/abc\n");
  put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "50000000\n");
  EXPECT_EQ(look().limit, 50000000U);
  belongs("4:memory:/docker/abc/below\n");
  put("/sys/fs/cgroup/memory/below/memory.limit_in_bytes", "30000000\n");
  EXPECT_EQ(look().limit, 30000000U);
  belongs("4:memory:/docker/abcd\n");  // not below what is mounted: the top is what can be read
  EXPECT_EQ(look().limit, 50000000U);
}

TEST_F(MemoryGroupTest, AGroupOutsideTheNamespaceIsJudgedByTheTop) {
  mounted(kVersion2);
  belongs("0::/../beside\n");
  put("/sys/fs/cgroup/memory.max", "50000000\n");
  put("/sys/fs/beside/memory.max", "10000000\n");
  EXPECT_EQ(look().limit, 50000000U);
}

class UnreadableGroupTest : public MemoryGroupTest {
 protected:
  void SetUp() override {
    MemoryGroupTest::SetUp();
    mounted(std::string(kVersion1) + kVersion2);
    belongs("4:memory:/a\n0::/b/c\n");
    put(kMax, "100000000\n");
    put("/sys/fs/cgroup/b/memory.max", "200000000\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "300000000\n");
    ASSERT_TRUE(look().is_known) << "those at the top have no files";
    ASSERT_EQ(look().limit, 100000000U);
  }
  static constexpr const char* kMax = "/sys/fs/cgroup/b/c/memory.max";
};

TEST_F(UnreadableGroupTest, IsNotKnown) {
  for (const char* file : {"/proc/self/cgroup", "/proc/self/mountinfo", kMax, "/sys/fs/cgroup/b/memory.high",
                           "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "/sys/fs/cgroup/memory.max"}) {
    const std::string name = top_.string() + file;
    const bool is_there = files::exists(name);
    if (is_there) files::rename(name, name + ".kept");
    make_unreadable(file);
    EXPECT_FALSE(look().is_known) << file << " cannot be opened";
    make_folder(file);
    EXPECT_FALSE(look().is_known) << file << " cannot be read";
    files::remove(name);
    if (is_there) files::rename(name + ".kept", name);
    EXPECT_TRUE(look().is_known) << file;
  }
}

TEST_F(UnreadableGroupTest, IsOneWhoseLimitIsNoNumber) {
  for (const char* text : {"", "\n", "some\n"}) {
    put(kMax, text);
    EXPECT_FALSE(look().is_known) << text;
    EXPECT_EQ(look().limit, 200000000U) << "what can be read counts";
  }
  put(kMax, "max\n");
  EXPECT_TRUE(look().is_known);
}

TEST_F(MemoryGroupTest, NothingIsALimitToo) {
  mounted(kVersion2);
  belongs("0::/a\n");
  put("/sys/fs/cgroup/a/memory.max", "0\n");
  EXPECT_EQ(look().limit, 0U);
  EXPECT_TRUE(look().is_known);
}

TEST_F(MemoryGroupTest, OfAnotherProcess) {
  mounted(kVersion2);
  belongs("0::/mine\n");
  belongs("0::/its\n", "4711");
  put("/sys/fs/cgroup/mine/memory.max", "50000000\n");
  put("/sys/fs/cgroup/its/memory.max", "60000000\n");
  EXPECT_EQ(look().limit, 50000000U);
  EXPECT_EQ(look(4711).limit, 60000000U);
}

}  // namespace
}  // namespace varve
