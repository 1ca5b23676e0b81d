#include "cleaner/strategy/bridges.h"

#include <gtest/gtest.h>

#include <string_view>

namespace varve::cleaner {
namespace {

using Indices = std::vector<std::uint32_t>;

// '#' is live, '.' is free.
Indices bridges(std::string_view blocks, std::uint32_t least) {
  std::vector<bool> live;
  for (const char c : blocks) live.push_back(c == '#');
  return bridges_between(live, least);
}

TEST(Bridges, JoinTwoSmallHoles) {
  EXPECT_EQ(bridges("##..#..##", 4), Indices{4});
  EXPECT_EQ(bridges("##.#.#.##", 5), (Indices{3, 5}));
}

TEST(Bridges, AreNotMovedForNothing) {
  EXPECT_TRUE(bridges("##....##", 4).empty()) << "large enough";
  EXPECT_TRUE(bridges("##..#....##", 4).empty()) << "the other one is";
  EXPECT_TRUE(bridges("##.#####.##", 4).empty()) << "too far away";
  EXPECT_TRUE(bridges("##.#.####", 4).empty()) << "together too small";
  EXPECT_TRUE(bridges("#.##.#", 4).empty()) << "as many would be moved as are free";
  EXPECT_TRUE(bridges("####", 4).empty());
  EXPECT_TRUE(bridges("", 4).empty());
}

TEST(Bridges, StopWhereItIsEnough) {
  // The first two make 5 of which 4 are free; the next pair stands on its own.
  EXPECT_EQ(bridges("..#..####..#..", 4), (Indices{2, 11}));
}

TEST(Bridges, DoNotReachAcrossALargeHole) {
  EXPECT_TRUE(bridges("#.#.....#.#", 4).empty());
}

}  // namespace
}  // namespace varve::cleaner
