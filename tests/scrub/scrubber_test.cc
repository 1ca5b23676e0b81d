// Started, stopped, asked, remounted.
#include "scrub/scrubber.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>

#include <set>
#include <sstream>
#include <vector>

#include "fs/engine.h"
#include "image_tools.h"
#include "support/fault_device.h"
#include "support/fs_fixture.h"
#include "support/pattern.h"
#include "support/waiting.h"
#include "support/world.h"

namespace varve::scrub {
namespace {

using Phase = State::Phase;
using test::FsFixture;

class ScrubberTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::make_image(device, {}).ok());
    mount();
    for (int i = 0; i < 8; ++i) {
      const auto made = fixture->make("/f" + std::to_string(i), 0100644);
      ASSERT_TRUE(made.ok());
      ASSERT_TRUE(
          fixture->write(made->ino, 0, test::pattern_bytes(static_cast<std::uint64_t>(i) + 1, 0, 2 << 20)).ok());
    }
  }
  void mount(io::BlockDevice* on = nullptr) {
    fs::Options options = test::test_options(clock, random);
    options.background = true;
    options.clock = &Clock::system();
    fixture = std::make_unique<FsFixture>(on ? *on : device, options);
    ASSERT_TRUE(fixture->mount().ok());
  }
  void remount() {
    ASSERT_TRUE(fixture->unmount().ok());
    mount();
  }
  Status start(const Request& request) {
    return fixture->call([&](fs::Operation& op) { return fixture->fs().start_scrub(op, request); });
  }
  State state() { return fixture->fs().status().scrub; }
  State wait_while(Phase phase) {
    State now;
    test::wait_until([&] { return (now = state()).phase != phase; });
    return now;
  }
  // Runs at a crawl until it has read something, then stops.
  State begin_and_stop() {
    EXPECT_TRUE(start({.bytes_per_second = 4 << 20, .from_the_beginning = false}).ok());
    test::wait_until([&] { return state().blocks > 0; });
    fixture->fs().stop_scrub();
    return wait_while(Phase::running);
  }

  io::MemDevice device{64u << 20};
  test::ManualClock clock;
  SeededRandom random{1};
  std::unique_ptr<FsFixture> fixture;
};

TEST_F(ScrubberTest, FinishesAndSaysSo) {
  EXPECT_EQ(state().phase, Phase::never);
  ASSERT_TRUE(start({.bytes_per_second = 0, .from_the_beginning = false}).ok());
  const State end = wait_while(Phase::running);
  EXPECT_EQ(end.phase, Phase::finished) << end.reason;
  EXPECT_EQ(end.errors, 0U);
  EXPECT_GE(end.blocks, 8U * 512) << "also what no checkpoint held when it was asked for";
  EXPECT_GT(end.started, 0);
  EXPECT_GE(end.finished, end.started);
  remount();
  EXPECT_EQ(state().phase, Phase::finished);
  EXPECT_EQ(state().finished, end.finished);
  EXPECT_EQ(test::check_image(device), "") << "the checker knows the mark";
}

TEST_F(ScrubberTest, GoesOnAfterARemount) {
  const State stopped = begin_and_stop();
  ASSERT_EQ(stopped.phase, Phase::stopped);
  ASSERT_LT(stopped.blocks, 8U * 512) << "at 4 MiB/s it cannot have read 16 MiB in so few steps";
  remount();
  EXPECT_EQ(state().phase, Phase::stopped);
  EXPECT_EQ(state().blocks, stopped.blocks);
  // Only what lies ahead is found.
  const auto first = test::find_block(device, test::pattern_bytes(1, 0, kBlockSize));
  const auto last = test::find_block(device, test::pattern_bytes(8, (2 << 20) - kBlockSize, kBlockSize));
  ASSERT_EQ(first.size() * last.size(), 1U);
  test::flip_bit(device, first[0], 1);
  test::flip_bit(device, last[0], 1);
  ASSERT_TRUE(start({.bytes_per_second = 0, .from_the_beginning = false}).ok());
  const State end = wait_while(Phase::running);
  EXPECT_EQ(end.phase, Phase::finished);
  EXPECT_EQ(end.started, stopped.started);
  ASSERT_EQ(end.findings.size(), 1U);
  EXPECT_EQ(end.findings[0].address, last[0]);
  EXPECT_EQ(end.findings[0].file_block, 511U);
  EXPECT_EQ(end.errors, 1U);
  remount();
  EXPECT_EQ(state().errors, 1U) << "how many there were is kept, if not which";
}

TEST_F(ScrubberTest, ACrashCostsOnlyAPartOfTheWay) {
  const State stopped = begin_and_stop();
  ASSERT_TRUE(fixture->checkpoint().ok());
  test::wait_until([&] { return test::superblock_of(device).scrub.blocks == stopped.blocks; });
  fixture->crash();
  mount();
  EXPECT_EQ(state().phase, Phase::stopped);
  EXPECT_EQ(state().blocks, stopped.blocks);
}

TEST_F(ScrubberTest, MayBeginAnew) {
  const State stopped = begin_and_stop();
  ASSERT_TRUE(start({.bytes_per_second = 0, .from_the_beginning = true}).ok());
  const State end = wait_while(Phase::running);
  EXPECT_EQ(end.phase, Phase::finished);
  EXPECT_GE(end.blocks, 8U * 512);
  EXPECT_LT(end.blocks, 8U * 512 + stopped.blocks + 256) << "what was read before does not count";
}

TEST_F(ScrubberTest, OneAtATimeButTheRateMayChange) {
  ASSERT_TRUE(start({.bytes_per_second = 1 << 20, .from_the_beginning = false}).ok());
  EXPECT_TRUE(start({.bytes_per_second = 1 << 20, .from_the_beginning = true}).fails_with(Errc::busy));
  ASSERT_TRUE(start({.bytes_per_second = 0, .from_the_beginning = false}).ok());
  EXPECT_EQ(state().bytes_per_second, 0U);
  EXPECT_EQ(wait_while(Phase::running).phase, Phase::finished);
}

TEST_F(ScrubberTest, UnmountingStopsIt) {
  ASSERT_TRUE(start({.bytes_per_second = 1 << 20, .from_the_beginning = false}).ok());
  remount();
  EXPECT_EQ(state().phase, Phase::stopped);
}

TEST_F(ScrubberTest, ErrorsCountForALifetime) {
  ASSERT_TRUE(fixture->checkpoint().ok());
  test::flip_bit(device, test::find_block(device, test::pattern_bytes(3, 0, kBlockSize)).at(0), 5);
  ASSERT_TRUE(start({.bytes_per_second = 0, .from_the_beginning = false}).ok());
  EXPECT_EQ(wait_while(Phase::running).errors, 1U);
  remount();
  EXPECT_EQ(fixture->fs().status().lifetime.errors, 1U);
  EXPECT_EQ(fixture->fs().status().last_error.code, static_cast<std::uint32_t>(Errc::corrupt));
}

TEST_F(ScrubberTest, ADeviceThatIsGoneEndsIt) {
  ASSERT_TRUE(fixture->unmount().ok());
  test::FaultDevice faults(device);
  mount(&faults);
  ASSERT_TRUE(start({.bytes_per_second = 4 << 20, .from_the_beginning = false}).ok());
  test::wait_until([&] { return state().blocks > 0; });
  faults.add({.action = test::Fault::Action::vanish, .kind = {}});
  ASSERT_TRUE(start({.bytes_per_second = 0, .from_the_beginning = false}).ok());
  const State end = wait_while(Phase::running);
  EXPECT_NE(end.phase, Phase::running);
  EXPECT_GT(end.errors, 0U);
  EXPECT_LE(end.findings.size(), Scrubber::kMaxFindings);
  fixture->crash();
}

std::size_t count(const std::string& text, std::string_view words) {
  std::size_t found = 0;
  for (std::size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++found;
  return found;
}

TEST_F(ScrubberTest, TheLogHasTheFirstErrorsAndACount) {
  ASSERT_TRUE(fixture->checkpoint().ok());
  std::set<std::vector<std::byte>> written;
  for (std::uint64_t file = 1; file <= 8; ++file)
    for (std::uint64_t at = 0; at < 2 << 20; at += kBlockSize) written.insert(test::pattern_bytes(file, at, kBlockSize));
  for (BlockAddr at{0}; at.v < device.geometry().blocks(); at.v += 2)  // what lies side by side is one error
    if (written.contains(test::block_at(device, at))) test::flip_bit(device, at, 5);
  std::ostringstream text;
  const auto before = spdlog::default_logger();
  spdlog::set_default_logger(std::make_shared<spdlog::logger>("heard", std::make_shared<spdlog::sinks::ostream_sink_mt>(text)));
  ASSERT_TRUE(start({.bytes_per_second = 0, .from_the_beginning = false}).ok());
  const State end = wait_while(Phase::running);
  remount();  // waits for the thread
  spdlog::set_default_logger(before);
  ASSERT_GT(end.errors, Scrubber::kMaxFindings);
  EXPECT_EQ(count(text.str(), ": scrub: "), Scrubber::kMaxFindings + 1);
  EXPECT_EQ(count(text.str(), "scrub: " + std::to_string(end.errors - Scrubber::kMaxFindings) + " more errors"), 1U);
}

}  // namespace
}  // namespace varve::scrub
