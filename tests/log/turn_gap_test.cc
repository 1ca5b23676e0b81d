// A disk that turns, and how much is left free between two chunks on it.
#include "device/turn_gap.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

namespace varve::device {
namespace {

// Blocks pass under the head all the time. What is written waits for its place.
struct Platter {
  double turn_ns = 11.1e6, blocks = 280;
  double thought_ns = 300'000;  // from the answer to the next write, and up to so much longer:
  double hesitation_ns = 0;

  double block_ns() const { return turn_ns / blocks; }
};

struct Writes {
  explicit Writes(const Platter& its_platter) : platter(its_platter) {}

  // Writes two blocks so many times; returns the mean time.
  double go_on(int times) {
    double sum = 0;
    for (int i = 0; i < times; ++i) {
      const std::uint32_t left = gap.choose(true).blocks;
      now += platter.thought_ns + platter.hesitation_ns * std::uniform_real_distribution<>()(random);
      const double began = now;
      const double place = std::fmod(end + before, platter.blocks) * platter.block_ns();
      double wait = std::fmod(place - now, platter.turn_ns);
      if (wait < 0) wait += platter.turn_ns;
      now += wait + 2 * platter.block_ns();
      end = end + before + 2;
      gap.observe({Lsn{++lsn}, before, static_cast<std::uint64_t>(began), static_cast<std::uint64_t>(now)});
      sum += now - began;
      before = left;
    }
    return sum / times;
  }

  Platter platter;
  TurnGap gap{true, std::nullopt};
  std::mt19937_64 random{1};
  double now = 1e9, end = 0;
  std::uint32_t before = 0;
  std::uint64_t lsn = 0;
};

// What a write takes, by the blocks that were left in front of it. Returns how many were left in all.
std::uint64_t write_all(TurnGap& gap, int times, const std::function<double(std::uint32_t)>& ns_of) {
  std::uint64_t now = 1'000'000'000, left = 0;
  std::uint32_t before = 0;
  for (int lsn = 1; lsn <= times; ++lsn) {
    const TurnGap::Choice choice = gap.choose(true);
    const std::uint64_t began = now;
    now += static_cast<std::uint64_t>(ns_of(before));
    gap.observe({Lsn{static_cast<std::uint64_t>(lsn)}, before, began, now});
    left += before = choice.blocks;
  }
  return left;
}

TEST(TurnGap, SavesTheTurn) {
  for (const double hesitation : {0.0, 100'000.0}) {
    Writes writes{{.hesitation_ns = hesitation}};
    writes.go_on(100);
    EXPECT_LT(writes.go_on(2000), writes.platter.turn_ns / 4);
    const double passes = (writes.platter.thought_ns + hesitation / 2) / writes.platter.block_ns();
    EXPECT_GE(writes.gap.best(), passes);
    EXPECT_LE(writes.gap.best(), 2 * passes + 4);
  }
}

TEST(TurnGap, FollowsAProgramThatThinksLonger) {
  Writes writes{Platter{}};
  writes.go_on(500);
  writes.platter.thought_ns = 1'500'000;
  writes.go_on(3000);
  EXPECT_LT(writes.go_on(1000), writes.platter.turn_ns / 2);
  writes.platter.thought_ns = 200'000;
  writes.go_on(3000);
  EXPECT_LT(writes.go_on(1000), writes.platter.turn_ns / 4);
}

TEST(TurnGap, LeavesNoneWhereNothingTurns) {
  TurnGap none{false, std::nullopt}, fixed{false, 7}, off{true, 0};
  EXPECT_FALSE(none.leaves_any() || off.leaves_any());
  EXPECT_EQ(none.choose(true).blocks, 0U);
  EXPECT_EQ(off.choose(true).blocks, 0U);
  EXPECT_TRUE(fixed.leaves_any());
  EXPECT_EQ(fixed.choose(true).blocks, 7U);
}

// Memory behind a battery, or an SSD that the kernel takes for a disk.
TEST(TurnGap, TriesNoneWhereNoWriteTakesATurn) {
  TurnGap gap{true, std::nullopt};
  EXPECT_EQ(write_all(gap, 20'000, [](std::uint32_t) { return 300e3; }), 0U);
}

TEST(TurnGap, LeavesNoneWhereNothingIsGained) {
  TurnGap gap{true, std::nullopt};
  std::mt19937_64 random{2};
  std::exponential_distribution<> noise;
  const std::uint64_t left = write_all(gap, 20'000, [&](std::uint32_t) { return 3e6 + 5e5 * noise(random); });
  EXPECT_EQ(gap.best(), 0U);
  EXPECT_LT(left, 2 * 5 * 440U) << "tried twice";
}

// A stick that copies what is skipped.
TEST(TurnGap, LeavesItAtOnceWhereGapsAreDear) {
  TurnGap gap{true, std::nullopt};
  const std::uint64_t left = write_all(gap, 20'000, [](std::uint32_t before) { return before ? 30e6 : 4e6; });
  EXPECT_EQ(gap.best(), 0U);
  EXPECT_LT(left, 3 * 16U);
}

TEST(TurnGap, LearnsNothingFromWhatComesSlowlyOrTogether) {
  TurnGap gap{true, std::nullopt};
  std::uint64_t now = 1'000'000'000;
  for (std::uint64_t lsn = 1; lsn < 200; ++lsn) {
    EXPECT_EQ(gap.choose(true).blocks, 0U);
    gap.observe({Lsn{lsn}, 0, now, now + 9'000'000});
    now += 100'000'000;
  }
  for (std::uint64_t lsn = 200; lsn < 400; ++lsn) {  // each one begins before the last one has ended
    EXPECT_EQ(gap.choose(true).blocks, 0U);
    gap.observe({Lsn{lsn}, 0, now, now + 9'000'000});
    now += 5'000'000;
  }
  EXPECT_EQ(gap.best(), 0U);
}

}  // namespace
}  // namespace varve::device
