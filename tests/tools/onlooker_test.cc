// What a reader can tell of another machine that may have the filesystem mounted.
#include "control/onlooker.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "io/mem_device.h"
#include "io/trace_device.h"
#include "lease/area.h"
#include "lease/process.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"

namespace varve::fuse {
namespace {

using std::chrono_literals::operator""ms;

// What the reader has opened: storage that others may reach, with a lock of its own or without.
class Shared : public io::TraceDevice {
 public:
  explicit Shared(io::BlockDevice& below) : io::TraceDevice(below), geometry_(below.geometry()) { geometry_.may_be_shared = true; }
  const io::Geometry& geometry() const override { return geometry_; }
  bool is_locked_by_another() override { return is_locked; }

  bool is_locked = false;
  io::Geometry geometry_;
};

class OnlookerTest : public testing::Test {
 protected:
  OnlookerTest() {
    EXPECT_TRUE(test::make_image(memory_, {}).ok());
    EXPECT_TRUE(there_.mount().ok());
    lease_.holder = 7;
    lease_.process.boot.fill(1);
    lease_.process.host = "rose";
    EXPECT_TRUE(area_.write(lease_).ok());
  }

  void write_there(const std::string& path) {
    ASSERT_TRUE(there_.make(path, S_IFREG | 0644).ok());
    ASSERT_TRUE(there_.write(*there_.resolve(path), 0, test::pattern_bytes(8192, 0, 8192)).ok());
    ASSERT_TRUE(there_.seal().ok());
  }

  io::MemDevice memory_{64u << 20};
  Shared here_{memory_};
  lease::Area area_{memory_};
  format::Lease lease_;
  test::ManualClock clock_;
  SeededRandom random_{1};
  test::FsFixture there_{memory_, test::test_options(clock_, random_)};
};

TEST_F(OnlookerTest, WithoutALeaseThereIsNobody) {
  EXPECT_TRUE(area_.clear_lease().ok());
  control::Onlooker onlooker(here_);
  EXPECT_EQ(onlooker.watch(0ms), control::Presence::nobody);
  EXPECT_EQ(control::warning_of(onlooker, control::Presence::nobody), "");
}

TEST_F(OnlookerTest, AnIdleHolderMayHaveEnded) {
  write_there("/before");
  control::Onlooker onlooker(here_);
  EXPECT_EQ(onlooker.watch(600ms), control::Presence::unknown);
  EXPECT_NE(onlooker.holder().find("rose"), std::string::npos);
}

TEST_F(OnlookerTest, AHolderThatWritesToTheLogLives) {
  write_there("/before");
  control::Onlooker onlooker(here_);
  write_there("/meanwhile");
  EXPECT_EQ(onlooker.watch(0ms), control::Presence::lives);
}

TEST_F(OnlookerTest, AHolderThatMakesACheckpointLives) {
  write_there("/before");
  control::Onlooker onlooker(here_);
  EXPECT_TRUE(there_.checkpoint().ok());
  EXPECT_EQ(onlooker.watch(0ms), control::Presence::lives);
}

TEST_F(OnlookerTest, AHolderThatAnswersAnotherOneLives) {
  control::Onlooker onlooker(here_);
  EXPECT_TRUE(area_.write(format::Answer{3, lease_.holder}).ok());
  EXPECT_EQ(onlooker.watch(0ms), control::Presence::lives);
}

TEST_F(OnlookerTest, TheStoragesOwnLockTellsMore) {
  here_.is_locked = true;
  EXPECT_EQ(control::Onlooker(here_).watch(0ms), control::Presence::lives);
}

TEST_F(OnlookerTest, ACopyIsNobodys) {
  control::Onlooker onlooker(memory_);  // which nobody else can reach
  EXPECT_EQ(onlooker.watch(0ms), control::Presence::nobody);
}

TEST_F(OnlookerTest, ADiskOfThisMachineMayBeUsedInAContainer) {
  lease_.process = lease::this_process("varve mount", "");
  ++lease_.process.pid_namespace;
  EXPECT_TRUE(area_.write(lease_).ok());
  EXPECT_EQ(control::Onlooker(memory_).watch(0ms), control::Presence::unknown);
  lease_.object = {1, 2};  // an image file: its lock would have been met
  EXPECT_TRUE(area_.write(lease_).ok());
  EXPECT_EQ(control::Onlooker(memory_).watch(0ms), control::Presence::nobody);
}

}  // namespace
}  // namespace varve::fuse
