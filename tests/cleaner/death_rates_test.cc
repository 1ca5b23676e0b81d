#include "cleaner/placement/death_rates.h"

#include <gtest/gtest.h>

#include <cmath>

namespace varve::cleaner {
namespace {

void write(DeathRates& rates, std::uint64_t key, std::uint64_t clock, std::uint64_t interval, double before, double after) {
  rates.written({.interval = interval, .estimate = after, .previous_estimate = before, .key = key, .clock = clock});
}

// 100 blocks that live for exactly `interval`, `times` over.
void live_regularly(DeathRates& rates, std::uint64_t interval, unsigned times) {
  const auto estimate = static_cast<double>(interval);
  for (std::uint64_t key = 0; key < 100; ++key) write(rates, key, 1, kUnknown, 0, estimate);
  for (unsigned i = 1; i <= times; ++i)
    for (std::uint64_t key = 0; key < 100; ++key) write(rates, key, 1 + i * interval, interval, estimate, estimate);
}

TEST(DeathRates, KnowsNothingAtFirst) {
  const DeathRates rates(1e6, 1000);
  EXPECT_DOUBLE_EQ(rates.rate(500, 10), 1.0 / 500);
  EXPECT_DOUBLE_EQ(rates.rate(500, 2000), 1.0 / 2000);
  EXPECT_DOUBLE_EQ(rates.rate_when_new(500), 1.0 / 500);
  EXPECT_DOUBLE_EQ(rates.rate_when_new(0), 1.0 / 1e6);
}

TEST(DeathRates, DividesDeathsByTheTimeSpentAlive) {
  DeathRates rates(1e9, 1000);
  live_regularly(rates, 100, 50);
  // 5000 deaths in 100 · 5000 of life, and four assumed at the estimate's rate.
  EXPECT_NEAR(rates.rate_when_new(100), 0.01, 1e-6);
  // Ages 64 to 100: all die there, so the rate is 1 / 36.
  EXPECT_NEAR(rates.rate(100, 80), (5000 + 4) / (36.0 * 5000 + 400), 1e-4);
  // Ages 32 to 63: none.
  EXPECT_NEAR(rates.rate(100, 40), 4 / (32.0 * 5000 + 400), 1e-6);
}

TEST(DeathRates, TheLivingCount) {
  DeathRates rates(1e9, 1000);
  live_regularly(rates, 100, 50);
  rates.sweep(5001 + 100'000);  // none of the 100 has been written since 5001
  EXPECT_NEAR(rates.rate(100, 20'000), 4 / (100 * 16384.0 + 80'000), 1e-6);
}

TEST(DeathRates, AHalvedSampleSpeaksForTwice) {
  DeathRates all(1e9, 1000), some(1e9, 50);
  live_regularly(all, 100, 200);
  live_regularly(some, 100, 200);
  EXPECT_NEAR(some.rate_when_new(100) / all.rate_when_new(100), 1, 0.35);  // 50 or fewer of 100, drawn by hash
}

TEST(DeathRates, ForgetsWhatLiesBack) {
  DeathRates rates(1e6, 1000);
  live_regularly(rates, 100, 50);
  rates.sweep(6000);
  EXPECT_LT(rates.rate(100, 40), 0.0001);
  for (std::uint64_t key = 0; key < 100; ++key) write(rates, key, 6000, kUnknown, 0, 0);  // no longer of that estimate
  rates.sweep(20'006'000);
  EXPECT_NEAR(rates.rate(100, 40), 0.01, 1e-4);  // as if nothing was known
}

TEST(DeathRates, BlocksOfOneWriteCountOneByOne) {
  DeathRates one_by_one(1e9, 1000), together(1e9, 1000);
  live_regularly(one_by_one, 100, 50);
  WrittenBlock hundred{.estimate = 100, .key = 0, .blocks = 100, .clock = 1};
  together.written(hundred);
  hundred.interval = 100;
  hundred.previous_estimate = 100;
  for (unsigned i = 1; i <= 50; ++i) {
    hundred.clock = 1 + i * 100;
    together.written(hundred);
  }
  for (double age : {10.0, 40.0, 80.0}) EXPECT_DOUBLE_EQ(together.rate(100, age), one_by_one.rate(100, age)) << age;
}

// Of an image that lies, or with a clock that has been set back.
TEST(DeathRates, NoAgeIsTooHigh) {
  DeathRates rates(1e9, 1000);
  for (unsigned i = 0; i < 100; ++i) write(rates, 1, 5, 0, 100, 100);
  EXPECT_GT(rates.rate(100, 0), 0.1);
  for (const int power : {39, 63, 64, 1000}) EXPECT_DOUBLE_EQ(rates.rate(100, std::ldexp(1.0, power)), std::ldexp(1.0, -power)) << power;
}

}  // namespace
}  // namespace varve::cleaner
