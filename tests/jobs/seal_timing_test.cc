// How long payload may wait in memory, and what it costs when it is gone before it is sealed: nothing.
#include "jobs/seal_timing.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "changes/staging.h"
#include "changes/unsealed.h"
#include "fs/engine.h"
#include "jobs/jobs.h"
#include "log/log.h"
#include "space/space.h"
#include "store/store.h"
#include "support/mounted_test.h"
#include "support/pattern.h"

namespace varve::jobs {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

TEST(SealTiming, ASyncWaitsForATenthOfTheTimeSinceTheLastOne) {
  SealView view{.bytes_per_second = 90'000'000, .room = 1ULL << 40};
  EXPECT_EQ(most_unsealed(view), 1'800'000U) << "20 ms at least";
  view.bytes_per_second = 9'000'000;
  EXPECT_EQ(most_unsealed(view), kLeastUnsealed) << "or a MiB";
  view.bytes_per_second = 90'000'000;
  view.quiet_ns = 3 * kSecond;
  EXPECT_EQ(most_unsealed(view), 27'000'000U);
  view.quiet_ns = 10 * kSecond;
  EXPECT_EQ(most_unsealed(view), 90'000'000U);
  view.quiet_ns = 3000 * kSecond;
  EXPECT_EQ(most_unsealed(view), 90'000'000U) << "a second at most";
}

TEST(SealTiming, AModestAmountMayWaitLonger) {
  SealView view{.quiet_ns = kSecond / 10, .bytes_per_second = 20'000'000, .room = 1ULL << 40};
  EXPECT_EQ(most_unsealed(view), kLeastUnsealed) << "somebody syncs often";
  view.quiet_ns = kSecond / 2;
  EXPECT_EQ(most_unsealed(view), 4U << 20);
  view.bytes_per_second = 6'000'000;
  view.quiet_ns = 3 * kSecond;
  EXPECT_EQ(most_unsealed(view), 3'000'000U) << "half a second's worth";
}

TEST(SealTiming, AStreamWaitsWhereChunksAreDear) {
  SealView view{.stream = 3'999'999, .quiet_ns = kSecond, .bytes_per_second = 16'000'000, .memory = 1 << 30, .room = 1ULL << 40};
  view.payload = view.held = view.stream;
  EXPECT_FALSE(seal_is_due(view));
  ++view.stream;
  EXPECT_TRUE(seal_is_due(view));
  view.bytes_per_second = 80'000'000;
  view.payload = view.held = view.stream = 12 << 20;
  EXPECT_TRUE(seal_is_due(view)) << "it costs a page";
  view.seeks = true;
  EXPECT_FALSE(seal_is_due(view)) << "it costs two seeks";
  view.quiet_ns = kSecond / 10;
  EXPECT_TRUE(seal_is_due(view)) << "somebody syncs often";
  view = {.payload = 2 << 20, .held = 2 << 20, .stream = 2 << 20, .quiet_ns = kSecond, .bytes_per_second = 300'000'000};
  view.memory = view.room = 1ULL << 40;
  EXPECT_FALSE(seal_is_due(view));
  view.bytes_per_second = 600'000'000;
  EXPECT_TRUE(seal_is_due(view)) << "it costs little";
}

TEST(SealTiming, AGapOfAStreamIsWaitedForWithinBounds) {
  SealView view{.payload = 2 << 20, .held = 2 << 20, .stream = 2 << 20, .quiet_ns = kSecond, .bytes_per_second = 600'000'000};
  view.memory = view.room = 1ULL << 40;
  EXPECT_TRUE(seal_is_due(view));
  view.stream_has_gap = true;
  EXPECT_FALSE(seal_is_due(view)) << "what comes before it is on its way";
  view.payload = view.held = view.stream = 17 << 20;
  EXPECT_TRUE(seal_is_due(view)) << "or it does not come";
  view.payload = view.held = view.stream = 2 << 20;
  view.quiet_ns = 0;
  EXPECT_TRUE(seal_is_due(view)) << "somebody syncs often";
  view.quiet_ns = kSecond;
  view.bytes_per_second = 8'000'000;
  view.payload = view.held = view.stream = 4'000'000;
  EXPECT_TRUE(seal_is_due(view)) << "half a second's worth: a sync must not take longer";
}

TEST(SealTiming, ADeviceIsSlowUntilItHasBeenMeasured) {
  EXPECT_LE(most_unsealed({.quiet_ns = 60 * kSecond, .room = 1ULL << 40}), 11'000'000U);
}

TEST(SealTiming, RoomBoundsIt) {
  SealView view{.quiet_ns = 60 * kSecond, .bytes_per_second = 1'000'000'000, .room = 48 << 20};
  EXPECT_EQ(most_unsealed(view), 3U << 20);
  view.room = 0;
  EXPECT_EQ(most_unsealed(view), kLeastUnsealed);
}

TEST(SealTiming, MemoryBoundsIt) {
  SealView view{.payload = 4 << 20, .held = 8 << 20, .quiet_ns = 60 * kSecond, .bytes_per_second = 1'000'000'000, .room = 1ULL << 40};
  view.memory = 9 << 20;
  EXPECT_FALSE(seal_is_due(view));
  view.memory = 8 << 20;
  EXPECT_TRUE(seal_is_due(view));
  view = {.payload = kLeastUnsealed - 1, .held = 2 * kLeastUnsealed - 1};
  EXPECT_FALSE(seal_is_due(view)) << "so much is always there";
  ++view.held;
  EXPECT_TRUE(seal_is_due(view));
}

TEST(SealTiming, ASyncIsRemembered) {
  SyncTimes times(7);
  times.note(100);
  EXPECT_EQ(times.since_last_ns(130), 30U);
  EXPECT_EQ(times.since_last_ns(90), 0U) << "of another thread's clock";
}

class Young : public test::MountedTest {
 protected:
  static constexpr std::size_t kBytes = 8192;
  const changes::Unsealed& unsealed() { return fixture_.store().staging().unsealed(); }
  std::uint64_t written() { return fixture_.store().log().chunks(); }
  static std::string name(int n) { return fmt::format("/{}", n); }
  void make(int n) {
    const auto file = fixture_.make(name(n), S_IFREG | 0644);
    ASSERT_TRUE(file.ok()) << file.error().message();
    ASSERT_TRUE(fixture_.write(file->ino, 0, test::pattern_bytes(static_cast<std::uint64_t>(n), 0, kBytes)).ok());
  }
  void remove(int n) {
    const Status gone = fixture_.call([&](fs::Operation& op) { return fixture_.fs().unlink(op, kRootIno, name(n).substr(1)); });
    ASSERT_TRUE(gone.ok()) << gone.error().message();
    fixture_.fs().engine().jobs().maintenance().work(false);  // frees it
  }
};

TEST_F(Young, ThousandsOfFilesThatComeAndGoAreNeverWritten) {
  constexpr int kFiles = 2000;  // promises of a dozen headers, and not enough for a checkpoint
  const std::uint64_t chunks = written(), blocks = fixture_.store().log().payload_blocks();
  for (int n = 0; n < kFiles; ++n) {
    make(n);
    if (n >= 20) remove(n - 20);
  }
  // What operations were promised may make a checkpoint due (Space::relief_is_due). It writes what is alive then.
  constexpr std::uint64_t kAlive = 20 * kBytes / kBlockSize;
  EXPECT_LE(written(), chunks + 1);
  EXPECT_LE(fixture_.store().log().payload_blocks(), blocks + kAlive);
  EXPECT_LE(unsealed().payload_bytes(), 20 * kBytes);
  ASSERT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().sync(op); }).ok());
  EXPECT_LE(written(), chunks + 2);
  EXPECT_LE(fixture_.store().log().payload_blocks(), blocks + 2 * kAlive) << "of " << kFiles * kBytes / kBlockSize << " that came";
  fixture_.crash();
  ASSERT_TRUE(fixture_.mount().ok());
  EXPECT_EQ(fixture_.list(kRootIno)->size(), 22U);
  for (int n = kFiles - 20; n < kFiles; ++n) {
    const auto found = fixture_.read(*fixture_.resolve(name(n)), 0, kBytes);
    ASSERT_TRUE(found.ok()) << n;
    EXPECT_EQ(*found, test::pattern_bytes(static_cast<std::uint64_t>(n), 0, kBytes));
  }
}

TEST_F(Young, WhatIsWrittenAgainIsWrittenOnce) {
  make(0);
  const std::uint64_t blocks = fixture_.store().log().payload_blocks(), chunks = written();
  for (int n = 0; n < 3000; ++n)
    ASSERT_TRUE(fixture_.write(*fixture_.resolve(name(0)), 0, test::pattern_bytes(n, 0, kBytes)).ok());
  EXPECT_EQ(written(), chunks);
  EXPECT_EQ(unsealed().payload_bytes(), kBytes);
  ASSERT_TRUE(fixture_.seal().ok());
  EXPECT_EQ(fixture_.store().log().payload_blocks(), blocks + kBytes / kBlockSize);
}

TEST_F(Young, BuffersThatAreHardlyWantedAnyMoreCountInFull) {
  clock_.advance(60 * kSecond);
  const std::uint64_t chunks = written(), most = fixture_.store().space().memory_beside_changes();
  std::uint64_t held = 0;
  for (int n = 0; written() == chunks && held < 2 * most; ++n) {
    const auto file = fixture_.make(name(n), S_IFREG | 0644);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(fixture_.write(file->ino, 0, test::pattern_bytes(n, 0, kMiB)).ok());
    fs::AttrChange change;
    change.size = kBlockSize;
    ASSERT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().setattr(op, file->ino, change); }).ok());
    held = std::max(held, unsealed().held_bytes());
  }
  EXPECT_LT(held, most + 3 * kMiB);
  EXPECT_GT(written(), chunks);
}

TEST_F(Young, AfterAWhileWithoutSyncsMoreWaits) {
  auto fill = [&](int first) {
    int n = first;
    const std::uint64_t chunks = written();
    while (written() == chunks) make(n++);
    return (n - first) * kBytes;
  };
  const std::size_t at_once = fill(0);
  EXPECT_LE(at_once, kLeastUnsealed);
  clock_.advance(60 * kSecond);
  EXPECT_GT(fill(10'000), at_once);
  ASSERT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().sync(op); }).ok());
  EXPECT_LE(fill(20'000), kLeastUnsealed) << "somebody syncs";
}

TEST_F(Young, AStreamDoesNotWait) {
  clock_.advance(60 * kSecond);
  const auto file = fixture_.make("/long", S_IFREG | 0644);
  for (std::uint64_t n = 0; n < 8; ++n) ASSERT_TRUE(fixture_.write(file->ino, n * kMiB, test::pattern_bytes(n, 0, kMiB)).ok());
  EXPECT_LE(unsealed().payload_bytes(), 3 * kMiB);
}

}  // namespace
}  // namespace varve::jobs
