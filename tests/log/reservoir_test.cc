#include "device/reservoir.h"

#include <gtest/gtest.h>

namespace varve::device {
namespace {

TEST(Reservoir, HoldsAllUntilItIsFull) {
  SeededRandom random(1);
  Reservoir reservoir(4);
  EXPECT_EQ(reservoir.mean_clock(), 0);
  reservoir.add(7, 100, random);
  reservoir.add(8, 200, random);
  EXPECT_EQ(reservoir.mean_clock(), 150);
  EXPECT_EQ(reservoir.seen(), 2u);
}

TEST(Reservoir, ARewriteChangesTheTimeOnly) {
  SeededRandom random(1);
  Reservoir reservoir(4);
  reservoir.add(7, 100, random);
  reservoir.add(8, 200, random);
  reservoir.add(7, 400, random);
  EXPECT_EQ(reservoir.mean_clock(), 300);
  EXPECT_EQ(reservoir.seen(), 2u);
  EXPECT_EQ(reservoir.size(), 2u);
}

TEST(Reservoir, EveryBlockHasTheSameChance) {
  constexpr std::uint32_t kBlocks = 100;
  double sum = 0;
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    SeededRandom random(seed);
    Reservoir reservoir(5);
    for (std::uint32_t block = 0; block < kBlocks; ++block) reservoir.add(block, block, random);
    EXPECT_EQ(reservoir.size(), 5u);
    EXPECT_EQ(reservoir.seen(), kBlocks);
    sum += reservoir.mean_clock();
  }
  EXPECT_NEAR(sum / 2000, 49.5, 1.2);  // standard error .29
}

TEST(Reservoir, WhatIsNotInTheSampleStaysOut) {
  SeededRandom random(1);
  Reservoir reservoir(2);
  reservoir.add(1, 100, random);
  reservoir.rewritten(1, 300);
  reservoir.rewritten(2, 900);
  EXPECT_EQ(reservoir.mean_clock(), 300);
  EXPECT_EQ(reservoir.size(), 1u);
}

TEST(Reservoir, Clears) {
  SeededRandom random(1);
  Reservoir reservoir(2);
  reservoir.add(1, 1, random);
  reservoir.clear();
  EXPECT_EQ(reservoir.size(), 0u);
  reservoir.add(2, 50, random);
  EXPECT_EQ(reservoir.mean_clock(), 50);
}

}  // namespace
}  // namespace varve::device
