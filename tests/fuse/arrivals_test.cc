// What the kernel has begun to write back is waited for, and what comes later is not.
#include "fuse/transport/arrivals.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace varve::fuse {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 64;
constexpr std::chrono::milliseconds kLong = 60s, kShort = 20ms;

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
  EXPECT_EQ(arrivals_.begun(), 0U);
}

TEST_F(ArrivalsTest, WhatIsUnderWayIsWaitedFor) {
  const unsigned side = arrivals_.begin_data();
  auto settled = settling();
  EXPECT_TRUE(goes_on(settled));
  arrivals_.end_data(side);
  EXPECT_TRUE(settled.get());
}

TEST_F(ArrivalsTest, WhatComesLaterIsNot) {
  const unsigned before = arrivals_.begin_data();
  auto settled = settling();
  unsigned after = before;
  while (after == before) {  // until it has begun
    after = arrivals_.begin_data();
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
  for (std::size_t i = 0; i < kMost; ++i) sides.push_back(arrivals_.begin_data());
  auto settled = settling();
  EXPECT_TRUE(goes_on(settled));
  const unsigned hidden = arrivals_.begin_data();  // comes only now, and was there before
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
  const unsigned side = arrivals_.begin_data();
  taking.end();
  EXPECT_TRUE(goes_on(settled));
  arrivals_.end_data(side);
  EXPECT_TRUE(settled.get());
}

TEST_F(ArrivalsTest, ThereIsALimit) {
  EXPECT_FALSE(arrivals_.settle(kMost, [] { return true; }, 5ms));
  const unsigned side = arrivals_.begin_data();
  EXPECT_FALSE(arrivals_.settle(kMost, nothing_waits, 5ms));
  arrivals_.end_data(side);
  EXPECT_TRUE(arrivals_.settle(kMost, nothing_waits, kLong));
}

TEST_F(ArrivalsTest, BesideThreadsThatTakeWithoutAPause) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i)
    threads.emplace_back([&] {
      Arrivals::Taking taking(arrivals_);
      while (!stop) {
        taking.begin();
        const unsigned side = arrivals_.begin_data();
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
