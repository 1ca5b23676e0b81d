// The name of a filesystem stands where programs look for it that read block 0 alone, wherever superblocks go.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <array>

#include "base/buffer.h"
#include "format/superblock.h"
#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kDeviceBlocks = (64ULL << 20) >> kBlockShift;
constexpr std::array kEnds{std::uint64_t{0}, kDeviceBlocks - 1};

class Names : public ::testing::TestWithParam<bool> {
 protected:
  void SetUp() override { ASSERT_TRUE(make_image(device_, {.superblocks_in_place = GetParam()}).ok()); }

  AlignedBuffer block(std::uint64_t at) {
    AlignedBuffer bytes(kBlockSize);
    EXPECT_TRUE(device_.read(at << kBlockShift, bytes.span()).ok());
    return bytes;
  }
  std::string label_at(std::uint64_t at) {
    const auto super = format::decode_superblock(block(at).span());
    return super.ok() ? super->label : super.error().message();
  }
  void name(const std::string& label) {
    ASSERT_TRUE(fixture_.mount().ok());
    ASSERT_TRUE(fixture_.make("/file", S_IFREG | 0644).ok());
    ASSERT_TRUE(fixture_.fs().tune("label", label).ok());
    ASSERT_TRUE(fixture_.checkpoint().ok());
  }

  io::MemDevice device_{kDeviceBlocks << kBlockShift};
  ManualClock clock_;
  SeededRandom random_{1};
  FsFixture fixture_{device_, test_options(clock_, random_)};
};

TEST_P(Names, StandAtBothEnds) {
  name("photos");
  for (const std::uint64_t at : kEnds) EXPECT_EQ(label_at(at), "photos");
  ASSERT_TRUE(fixture_.unmount().ok());
  for (const std::uint64_t at : kEnds) EXPECT_EQ(label_at(at), "photos");
}

// Nothing else was changed, and the end comes before the checkpoint that was asked for.
TEST_P(Names, OutliveAnUnmountAtOnce) {
  ASSERT_TRUE(fixture_.mount().ok());
  ASSERT_TRUE(fixture_.fs().tune("label", "photos").ok());
  ASSERT_TRUE(fixture_.unmount().ok());
  for (const std::uint64_t at : kEnds) EXPECT_EQ(label_at(at), "photos");
}

TEST_P(Names, AreSetRightByTheNextMountWhereACrashCameBetween) {
  std::vector<AlignedBuffer> before;
  for (const std::uint64_t at : kEnds) before.push_back(block(at));
  name("photos");
  fixture_.crash();
  for (std::size_t i = 0; i < kEnds.size() && !GetParam(); ++i)
    ASSERT_TRUE(device_.write(kEnds[i] << kBlockShift, before[i].span()).ok());
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(fixture_.fs().superblock().label, "photos");
  for (const std::uint64_t at : kEnds) EXPECT_EQ(label_at(at), "photos");
}

INSTANTIATE_TEST_SUITE_P(Superblocks, Names, ::testing::Bool(),
                         [](const auto& p) { return std::string(p.param ? "InPlace" : "InAnArea"); });

}  // namespace
}  // namespace varve::test
