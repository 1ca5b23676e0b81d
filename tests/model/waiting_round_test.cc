// A round that an operation waits for ends when it has gained something, however slow the device is. Where that has let nobody in, the
// next one gains more: with little each, one operation would wait for many rounds and as many checkpoints.
#include <gtest/gtest.h>

#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/settings.h"
#include "support/timed_device.h"
#include "support/world.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// Every fourth block of a file has been written over, so all its segments are three quarters live. Then requests take a second each.
class WaitingRound : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(device_, {.segment_blocks = kSegmentBlocks}).ok());
    fixture_.options().cleaner = false;
    fixture_.options().strategy = "copying";
    ASSERT_TRUE(fixture_.mount().ok());
    const auto made = fixture_.make("/file", 0100644);
    ASSERT_TRUE(made.ok());
    file_ = made->ino;
    const std::vector<std::byte> part(64 * kBlockSize, std::byte{1});
    for (std::uint64_t at = 0; at < kBlocks; at += 64) ASSERT_TRUE(fixture_.write(file_, at * kBlockSize, part).ok());
    ASSERT_TRUE(fixture_.checkpoint().ok());
    for (std::uint64_t at = 0; at < kBlocks; at += 4) overwrite(at);
    ASSERT_TRUE(fixture_.checkpoint().ok());
    takes_ns_ = kSecond;
  }
  void TearDown() override {
    ASSERT_TRUE(fixture_.unmount().ok());
    EXPECT_EQ(check_image(device_, false), "");
  }

  cleaner::Round run(bool waited_for) {
    cleaner::Round round = fixture_.fs().engine().cleaner().run_round(waited_for);
    EXPECT_TRUE(fixture_.store().checkpoints().make({.evacuate = round.emptied}).ok());
    return round;
  }
  void overwrite(std::uint64_t block) {
    ASSERT_TRUE(fixture_.write(file_, block * kBlockSize, std::vector<std::byte>(kBlockSize, std::byte{2})).ok());
  }
  static std::uint64_t gain(const cleaner::Round& round) { return round.emptied.size() * kSegmentBlocks - round.written; }

  static constexpr std::uint32_t kSegmentBlocks = 64;
  static constexpr std::uint64_t kBlocks = 256 * kSegmentBlocks;
  io::MemDevice device_{256u << 20};
  ManualClock clock_;
  SeededRandom random_{first_seed()};
  std::uint64_t takes_ns_ = 0;
  TimedDevice slow_{device_, clock_, false, [this](const io::IoRequest&) { return takes_ns_; }};
  Ino file_;
  FsFixture fixture_{slow_, test_options(clock_, random_)};
};

TEST_F(WaitingRound, GainsMoreWhereTheLastOneHasLetNobodyIn) {
  std::uint64_t gains[3];
  for (std::uint64_t& blocks : gains) blocks = gain(run(true));
  EXPECT_GE(gains[0], kSegmentBlocks / 4);
  EXPECT_LT(gains[0], kSegmentBlocks / 2);
  EXPECT_GE(gains[1], kSegmentBlocks / 2);
  EXPECT_LT(gains[1], kSegmentBlocks);
  EXPECT_GE(gains[2], kSegmentBlocks);
}

TEST_F(WaitingRound, GainsLittleAgainWhereUsersHaveGoneOn) {
  run(true);
  for (std::uint64_t at = 0; at < kSegmentBlocks; ++at) overwrite(16 * at + 1);
  EXPECT_LT(gain(run(true)), kSegmentBlocks / 2);
}

TEST_F(WaitingRound, EndsWithTheFirstSegmentWhereNobodyDoes) { EXPECT_EQ(run(false).emptied.size(), 1U); }

}  // namespace
}  // namespace varve::test
