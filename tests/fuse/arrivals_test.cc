// What the kernel has begun to write back is waited for, and what comes later is not.
#include "fuse/transport/arrivals.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "base/types.h"

namespace varve::fuse {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 64;
constexpr std::chrono::milliseconds kShort = 20ms;
constexpr Arrivals::Limits kLong{300s, 300s}, kBrief{5ms, 5ms};

bool nothing_waits() { return false; }

class ArrivalsTest : public ::testing::Test {
 protected:
  std::future<bool> settling(std::function<bool()> waits = nothing_waits) {
    return std::async(std::launch::async, [this, waits = std::move(waits)] { return arrivals_.settle(kMost, waits, kLong); });
  }
  static bool goes_on(std::future<bool>& settled) { return settled.wait_for(kShort) == std::future_status::timeout; }

  Arrivals arrivals_;
};

TEST_F(ArrivalsTest, NothingIsUnderWay) {
  EXPECT_TRUE(arrivals_.settle(kMost, nothing_waits, kLong));
  EXPECT_EQ(arrivals_.writes().count, 0U);
}

TEST_F(ArrivalsTest, WhatIsUnderWayIsWaitedFor) {
  const unsigned side = arrivals_.begin_write(kBlockSize);
  auto settled = settling();
  EXPECT_TRUE(goes_on(settled));
  arrivals_.end_data(side);
  EXPECT_TRUE(settled.get());
}

TEST_F(ArrivalsTest, WhatComesLaterIsNot) {
  const unsigned before = arrivals_.begin_write(kBlockSize);
  auto settled = settling();
  unsigned after = before;
  while (after == before) {  // until it has begun
    after = arrivals_.begin_write(kBlockSize);
    if (after == before) arrivals_.end_data(after);
  }
  arrivals_.end_data(before);
  EXPECT_TRUE(settled.get());
  auto next = settling();
  EXPECT_TRUE(goes_on(next));
  arrivals_.end_data(after);
  EXPECT_TRUE(next.get());
}

// As many as that may hide others.
TEST_F(ArrivalsTest, ManyAreFirstWaitedForWithoutCountingTheOthers) {
  std::vector<unsigned> sides;
  for (std::size_t i = 0; i < kMost; ++i) sides.push_back(arrivals_.begin_write(kBlockSize));
  auto settled = settling();
  EXPECT_TRUE(goes_on(settled));
  const unsigned hidden = arrivals_.begin_write(kBlockSize);  // comes only now, and was there before
  EXPECT_EQ(hidden, sides.front());
  for (const unsigned side : sides) arrivals_.end_data(side);
  EXPECT_TRUE(goes_on(settled));
  arrivals_.end_data(hidden);
  EXPECT_TRUE(settled.get());
}

TEST_F(ArrivalsTest, WhatNobodyHasTakenIsWaitedFor) {
  std::atomic<bool> waits{true};
  auto settled = settling([&] { return waits.load(); });
  EXPECT_TRUE(goes_on(settled));
  waits = false;
  EXPECT_TRUE(settled.get());
}

TEST_F(ArrivalsTest, AThreadThatIsTakingAMessageIsWaitedFor) {
  Arrivals::Taking other(arrivals_), taking(arrivals_);
  other.begin();
  other.end();
  taking.begin();
  auto settled = settling();
  EXPECT_TRUE(goes_on(settled));
  const unsigned side = arrivals_.begin_write(kBlockSize);
  taking.end();
  EXPECT_TRUE(goes_on(settled));
  arrivals_.end_data(side);
  EXPECT_TRUE(settled.get());
}

TEST_F(ArrivalsTest, ThereIsALimit) {
  EXPECT_FALSE(arrivals_.settle(kMost, [] { return true; }, kBrief));
  const unsigned side = arrivals_.begin_write(kBlockSize);
  EXPECT_FALSE(arrivals_.settle(kMost, nothing_waits, kBrief));
  arrivals_.end_data(side);
  EXPECT_TRUE(arrivals_.settle(kMost, nothing_waits, kLong));
}

// Also by the next call.
TEST_F(ArrivalsTest, WhatWasGivenUpIsNotForgotten) {
  const unsigned stuck = arrivals_.begin_write(kBlockSize);
  EXPECT_FALSE(arrivals_.settle(kMost, nothing_waits, kBrief));
  EXPECT_FALSE(arrivals_.settle(kMost, nothing_waits, kBrief));
  arrivals_.end_data(stuck);
  EXPECT_TRUE(arrivals_.settle(kMost, nothing_waits, kLong));
}

// Where it cannot be told whether the kernel has more.
TEST_F(ArrivalsTest, WhatHasComeIsWaitedForAlsoBesideManyReaders) {
  std::vector<unsigned> reads;
  for (std::size_t i = 0; i < kMost; ++i) reads.push_back(arrivals_.begin_read());
  const unsigned write = arrivals_.begin_write(kBlockSize);
  auto settled = std::async(std::launch::async, [this] { return arrivals_.settle(kMost, nothing_waits, {5ms, 300s}); });
  EXPECT_TRUE(goes_on(settled));
  arrivals_.end_data(write);
  EXPECT_FALSE(settled.get());
  for (const unsigned read : reads) arrivals_.end_data(read);
  EXPECT_TRUE(arrivals_.settle(kMost, nothing_waits, kLong));
}

// A snapshot of the filesystem is being read, maybe from a slow device.
TEST_F(ArrivalsTest, FewReadsAreNotWaitedFor) {
  const unsigned read = arrivals_.begin_read();
  EXPECT_TRUE(arrivals_.settle(kMost, nothing_waits, kLong));
  arrivals_.end_data(read);
}

TEST_F(ArrivalsTest, BesideThreadsThatTakeWithoutAPause) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      Arrivals::Taking taking(arrivals_);
      while (!stop) {
        taking.begin();
        const unsigned side = arrivals_.begin_write(kBlockSize);
        taking.end();
        std::this_thread::yield();
        arrivals_.end_data(side);
        std::this_thread::sleep_for(50us);  // else nobody else gets a CPU on a small machine
      }
    });
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(arrivals_.settle(kMost, nothing_waits, kLong));
  stop = true;
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace varve::fuse
