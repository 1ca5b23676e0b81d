// The crash device itself: which images a power cut may leave, and which it may not.
#include "support/crash_device.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "io/backends.h"

namespace varve::io::test {
namespace {

using varve::test::CrashDevice;
using varve::test::Cut;
using varve::test::CutPlan;
using varve::test::CutPolicy;

TEST(CrashDevice, EveryPrefix) {
  CrashDevice device(kSmallBytes);
  constexpr std::uint64_t kWrites = 200;  // several milestones
  for (std::uint64_t i = 0; i < kWrites; ++i) ASSERT_TRUE(put(device, i, i + 1).ok());
  EXPECT_EQ(device.position(), kWrites);
  for (std::uint64_t cut = 0; cut <= kWrites; ++cut) {
    const auto image = device.image({cut});
    for (std::uint64_t i = 0; i < kWrites; i += 7) ASSERT_TRUE(block_has(*image, i, i < cut ? i + 1 : 0)) << cut;
  }
}

// It keeps itself, and nothing that was written before it.
TEST(CrashDevice, DurableWritesSurviveByThemselves) {
  CrashDevice device(kSmallBytes);
  const auto reactor = Reactor::make();
  ASSERT_TRUE(put(device, 1, 1).ok());
  Batch batch;
  batch.write(2, 1).durable = true;
  batch.submit_all(device, *reactor);
  drain(*reactor);
  const std::size_t acknowledged = device.position();
  ASSERT_TRUE(put(device, 3, 1).ok());
  bool first_lost = false;
  for (const Cut& cut : device.cuts({.first = acknowledged, .seeds = 20})) {
    const auto image = device.image(cut);
    ASSERT_TRUE(block_has(*image, 2, 1)) << to_string(cut);
    first_lost = first_lost || !block_has(*image, 1, 1);
  }
  EXPECT_TRUE(first_lost);
}

TEST(CrashDevice, FlushedWritesSurviveEveryCut) {
  CrashDevice device(kSmallBytes);
  ASSERT_TRUE(put(device, 1, 1).ok());
  ASSERT_TRUE(put(device, 2, 1).ok());
  ASSERT_TRUE(device.flush().ok());
  const std::size_t acknowledged = device.position();
  ASSERT_TRUE(put(device, 1, 2).ok());
  ASSERT_TRUE(put(device, 3, 2).ok());
  EXPECT_EQ(device.flushes(), 1U);
  std::set<std::pair<bool, bool>> outcomes;
  for (const Cut& cut : device.cuts({.first = acknowledged, .seeds = 50})) {
    const auto image = device.image(cut);
    ASSERT_TRUE(block_has(*image, 2, 1)) << to_string(cut);
    const bool torn = !block_has(*image, 1, 1) && !block_has(*image, 1, 2);
    if (torn) {
      EXPECT_GE(cut.policy, CutPolicy::torn);
    }
    outcomes.emplace(block_has(*image, 1, 2), block_has(*image, 3, 2));
  }
  EXPECT_EQ(outcomes.size(), 4U) << "each write alone, both, none";
}

TEST(CrashDevice, AFlushCoversOnlyWhatWasCompleteWhenItWasSubmitted) {
  CrashDevice device(kSmallBytes);
  const auto reactor = Reactor::make();
  Batch batch;
  batch.write(1, 1);
  batch.flush();  // submitted before the write has completed
  batch.submit_all(device, *reactor);
  drain(*reactor);
  EXPECT_TRUE(block_has(*device.image({device.position(), CutPolicy::lost, 0}), 1, 0));
  EXPECT_TRUE(block_has(*device.image_now(), 1, 1));
  ASSERT_TRUE(device.flush().ok());
  EXPECT_TRUE(block_has(*device.image({device.position(), CutPolicy::lost, 0}), 1, 1));
}

TEST(CrashDevice, WritesInFlightMayBeThere) {
  CrashDevice device(kSmallBytes);
  const auto reactor = Reactor::make();
  Batch batch;
  for (std::uint64_t block = 0; block < 4; ++block) batch.write(block, 1);
  batch.submit_all(device, *reactor);
  drain(*reactor);
  bool last_without_first = false;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto image = device.image({0, CutPolicy::subset, seed});
    last_without_first |= block_has(*image, 3, 1) && block_has(*image, 0, 0);
  }
  EXPECT_TRUE(last_without_first);
}

TEST(CrashDevice, LaterWritesAreNotThereBeforeTheyWereSubmitted) {
  CrashDevice device(kSmallBytes);
  ASSERT_TRUE(put(device, 1, 1).ok());
  ASSERT_TRUE(put(device, 2, 1).ok());
  ASSERT_TRUE(put(device, 3, 1).ok());
  for (std::uint64_t seed = 0; seed < 100; ++seed)
    for (const CutPolicy policy : {CutPolicy::subset, CutPolicy::scramble})
      ASSERT_TRUE(block_has(*device.image({1, policy, seed}), 3, 0));
}

TEST(CrashDevice, TearsAtSectors) {
  CrashDevice device(kSmallBytes);
  ASSERT_TRUE(put(device, 4, 1, 2).ok());
  ASSERT_TRUE(device.flush().ok());
  ASSERT_TRUE(put(device, 4, 2, 2).ok());
  AlignedBuffer before(2 * kBlockSize), after(2 * kBlockSize);
  fill_pattern(before.data(), 4, 1, 2);
  fill_pattern(after.data(), 4, 2, 2);
  std::set<std::vector<bool>> seen;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto image = device.image({device.position(), CutPolicy::torn, seed});
    std::vector<bool> written;
    for (std::size_t at = 0; at < 2 * kBlockSize; at += 512) {
      std::vector<std::byte> sector(512);
      image->peek(4 * kBlockSize + at, sector);
      const bool is_new = std::memcmp(sector.data(), after.data() + at, 512) == 0;
      ASSERT_TRUE(is_new || std::memcmp(sector.data(), before.data() + at, 512) == 0);
      written.push_back(is_new);
    }
    seen.insert(written);
  }
  EXPECT_GT(seen.size(), 20U);
}

TEST(CrashDevice, DiscardsMayOrMayNotHappen) {
  CrashDevice device(kSmallBytes);
  ASSERT_TRUE(put(device, 1, 1).ok());
  ASSERT_TRUE(device.flush().ok());
  ASSERT_TRUE(device.discard(kBlockSize, kBlockSize).ok());
  std::set<bool> outcomes;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    outcomes.insert(block_has(*device.image({device.position(), CutPolicy::subset, seed}), 1, 0));
  EXPECT_EQ(outcomes.size(), 2U);
  EXPECT_TRUE(block_has(*device.image_now(), 1, 0));
}

TEST(CrashDevice, SameCutSameImage) {
  CrashDevice device(kSmallBytes);
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(put(device, i % 10, i + 1).ok());
  for (const Cut& cut : device.cuts({.max_positions = 10})) {
    const auto again = varve::test::parse_cut(to_string(cut));
    ASSERT_TRUE(again);
    EXPECT_EQ(*again, cut);
    const auto one = device.image(cut);
    const auto two = device.image(*again);
    std::vector<std::byte> a(10 * kBlockSize), b(10 * kBlockSize);
    one->peek(0, a);
    two->peek(0, b);
    EXPECT_EQ(a, b) << to_string(cut);
  }
  EXPECT_FALSE(varve::test::parse_cut("nonsense"));
  EXPECT_FALSE(varve::test::parse_cut("1:odd:2"));
  EXPECT_FALSE(varve::test::parse_cut("x:prefix:y"));
}

TEST(CrashDevice, RandomOrderOfCompletion) {
  const MemDevice start(kSmallBytes);
  CrashDevice device(start, {.completion_seed = 7});
  const auto reactor = Reactor::make();
  std::vector<std::uint64_t> order;
  Batch batch;
  for (std::uint64_t i = 0; i < 30; ++i) batch.write(i, 1).done = [&order, i](IoRequest&) { order.push_back(i); };
  batch.submit_all(device, *reactor);
  drain(*reactor);
  EXPECT_EQ(order.size(), 30U);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
}

TEST(CrashDevice, PowerOff) {
  CrashDevice device(kSmallBytes);
  ASSERT_TRUE(put(device, 1, 1).ok());
  device.power_off();
  EXPECT_FALSE(put(device, 1, 2).ok());
  EXPECT_FALSE(device.flush().ok());
  EXPECT_EQ(device.position(), 1U);
  EXPECT_TRUE(block_has(*device.image_now(), 1, 1));
}

TEST(CrashDevice, StartsFromAnImageAndLeavesItAlone) {
  MemDevice start(kSmallBytes);
  ASSERT_TRUE(put(start, 1, 1).ok());
  CrashDevice device(start);
  ASSERT_TRUE(put(device, 1, 2).ok());
  EXPECT_TRUE(block_has(start, 1, 1));
  EXPECT_TRUE(block_has(*device.image({0, CutPolicy::lost, 0}), 1, 1));
}

TEST(CrashDevice, ThousandsOfImagesAtOnce) {
  // 64 MiB each: only possible because they share their blocks.
  CrashDevice device(64 << 20);
  for (std::uint64_t i = 0; i < 500; ++i) {
    ASSERT_TRUE(put(device, i * 31, i, 4).ok());
    if (i % 10 == 9) {
      ASSERT_TRUE(device.flush().ok());
    }
  }
  std::vector<std::unique_ptr<MemDevice>> images;
  for (const Cut& cut : device.cuts({.seeds = 1})) images.push_back(device.image(cut));
  EXPECT_EQ(images.size(), 5 * (device.position() + 1));
}

}  // namespace
}  // namespace varve::io::test
