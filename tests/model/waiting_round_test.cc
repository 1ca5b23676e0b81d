// A round that an operation waits for gains as much as the checkpoint after it writes, however slow the device is. What gains less is
// followed by another round, and by another checkpoint.
#include <gtest/gtest.h>

#include "checkpoint/checkpoints.h"
#include "cleaner/cleaner.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "segments/counters.h"
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
    const std::vector<std::byte> part(64 * kBlockSize, std::byte{1});
    for (std::uint64_t at = 0; at < kBlocks; at += 64) ASSERT_TRUE(fixture_.write(made->ino, at * kBlockSize, part).ok());
    ASSERT_TRUE(fixture_.checkpoint().ok());
    const std::uint64_t nodes = fixture_.store().counters().node_blocks;
    for (std::uint64_t at = 0; at < kBlocks; at += 4)
      ASSERT_TRUE(fixture_.write(made->ino, at * kBlockSize, std::span(part).first(kBlockSize)).ok());
    ASSERT_TRUE(fixture_.checkpoint().ok());
    ASSERT_GE(fixture_.store().counters().node_blocks - nodes, kSegmentBlocks);
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
  static std::uint64_t gain(const cleaner::Round& round) { return round.emptied.size() * kSegmentBlocks - round.written; }

  static constexpr std::uint32_t kSegmentBlocks = 64;
  static constexpr std::uint64_t kBlocks = 256 * kSegmentBlocks;
  io::MemDevice device_{256u << 20};
  ManualClock clock_;
  SeededRandom random_{first_seed()};
  std::uint64_t takes_ns_ = 0;
  TimedDevice slow_{device_, clock_, false, [this](const io::IoRequest&) { return takes_ns_; }};
  FsFixture fixture_{slow_, test_options(clock_, random_)};
};

TEST_F(WaitingRound, GainsWhatACheckpointWritesWhereSomebodyWaits) {
  const cleaner::Round round = run(true);
  EXPECT_GE(gain(round), kSegmentBlocks) << round.why;
  EXPECT_LT(gain(round), kSegmentBlocks + kSegmentBlocks / 2);  // and no more, since it is late
}

TEST_F(WaitingRound, EndsWithTheFirstSegmentWhereNobodyDoes) { EXPECT_EQ(run(false).emptied.size(), 1U); }

}  // namespace
}  // namespace varve::test
