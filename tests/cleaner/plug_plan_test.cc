#include "cleaner/plug_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/clock.h"

namespace varve::cleaner {
namespace {

constexpr std::uint32_t kNoSplit = 1000;

Piece piece(std::uint64_t start, std::uint32_t blocks, std::size_t source = 0) { return {BlockAddr{start}, blocks, source}; }
format::Run hole(std::uint64_t start, std::uint32_t blocks) { return {BlockAddr{start}, blocks}; }
PlugMove move(std::uint64_t from, std::uint64_t to, std::uint32_t blocks) { return {BlockAddr{from}, BlockAddr{to}, blocks}; }

PlugPlan plan(const std::vector<Piece>& pieces, const std::vector<format::Run>& holes, std::uint32_t least_part = kNoSplit) {
  std::size_t sources = 0;
  for (const Piece& p : pieces) sources = std::max(sources, p.source + 1);
  PlugPlan result = plan_plugs(pieces, sources, holes, least_part);
  std::ranges::sort(result.moves, {}, &PlugMove::from);
  return result;
}

TEST(PlugPlan, PutsAPieceWhereItFitsExactly) {
  const PlugPlan p = plan({piece(10, 3), piece(20, 5)}, {hole(100, 8), hole(200, 5), hole(300, 3)});
  EXPECT_EQ(p.moves, (std::vector{move(10, 300, 3), move(20, 200, 5)}));
  EXPECT_EQ(p.perfect, 2U);
  EXPECT_EQ(p.emptied, std::vector<std::size_t>{0});
}

TEST(PlugPlan, FillsAHoleWithSeveral) {
  const PlugPlan p = plan({piece(10, 2), piece(20, 3), piece(30, 4)}, {hole(100, 6), hole(200, 20)});
  EXPECT_EQ(p.combined, 2U);
  std::uint32_t in_first = 0;
  for (const PlugMove& m : p.moves) in_first += m.to < BlockAddr{200} ? m.blocks : 0;
  EXPECT_EQ(in_first, 6U) << "2 and 4";
  EXPECT_EQ(p.loose, 1U);
}

TEST(PlugPlan, UsesEachPieceOnceInACombination) {
  // 4 + 4 would fill it, but there is only one of them.
  const PlugPlan p = plan({piece(10, 4)}, {hole(100, 8)});
  EXPECT_EQ(p.combined, 0U);
  EXPECT_EQ(p.moves, std::vector{move(10, 100, 4)});
}

TEST(PlugPlan, TakesTheSmallestHoleThatIsLargeEnough) {
  EXPECT_EQ(plan({piece(10, 4)}, {hole(100, 9), hole(200, 6), hole(300, 3)}).moves, std::vector{move(10, 200, 4)});
}

TEST(PlugPlan, UsesWhatIsLeftOfAHole) {
  const PlugPlan p = plan({piece(10, 4), piece(20, 3)}, {hole(100, 9)});
  EXPECT_EQ(p.moves, (std::vector{move(10, 100, 4), move(20, 104, 3)}));
}

TEST(PlugPlan, SplitsWhatIsLargerThanEveryHole) {
  const PlugPlan p = plan({piece(10, 9)}, {hole(100, 4), hole(200, 5)}, 2);
  EXPECT_EQ(p.moves, (std::vector{move(10, 200, 5), move(15, 100, 4)}));
  EXPECT_EQ(p.split, 1U);
}

// 9 = 8 + 1 would leave a part that is too small: 7 + 2.
TEST(PlugPlan, NeverSplitsOffLessThanTheLeastPart) {
  const PlugPlan p = plan({piece(10, 9)}, {hole(100, 8), hole(200, 2)}, 2);
  EXPECT_EQ(p.moves, (std::vector{move(10, 100, 7), move(17, 200, 2)}));
  EXPECT_TRUE(plan({piece(10, 9)}, {hole(100, 8), hole(200, 1)}, 2).moves.empty());
  EXPECT_TRUE(plan({piece(10, 9)}, {hole(100, 3), hole(200, 3), hole(300, 3)}, 4).moves.empty());
}

// Moving half a segment gains nothing.
TEST(PlugPlan, EmptiesASourceOrLeavesItAlone) {
  const PlugPlan p = plan({piece(10, 4, 0), piece(20, 4, 1), piece(30, 2, 1)}, {hole(100, 5), hole(200, 4)});
  EXPECT_EQ(p.moves.size(), 1U);
  EXPECT_EQ(p.moves[0].from, BlockAddr{10});
  EXPECT_EQ(p.emptied, std::vector<std::size_t>{0});
}

TEST(PlugPlan, OfNothingIsEmpty) {
  EXPECT_TRUE(plan({}, {hole(1, 5)}).moves.empty());
  EXPECT_TRUE(plan({piece(10, 1)}, {}, 1).moves.empty());
  EXPECT_TRUE(plan({piece(10, 1)}, {}, 1).emptied.empty());
}

// Whatever there is: every block of the emptied sources goes somewhere, into a hole, alone.
TEST(PlugPlan, MovesEveryBlockOnceAndOverlapsNothing) {
  SeededRandom random(7);
  auto below = [&](std::uint64_t n) { return random.next() % n; };
  for (int round = 0; round < 300; ++round) {
    std::vector<Piece> pieces;
    std::vector<format::Run> holes;
    const std::size_t sources = 1 + below(6);
    std::uint64_t at = 0;
    for (std::uint64_t i = 0; i < 1 + below(60); ++i, at += 70)
      pieces.push_back(piece(at, static_cast<std::uint32_t>(1 + below(1 + below(64))), below(sources)));
    at = 100'000;
    for (std::uint64_t i = 0; i < below(120); ++i, at += 70)
      holes.push_back(hole(at, static_cast<std::uint32_t>(1 + below(1 + below(64)))));
    const auto least = static_cast<std::uint32_t>(1 + below(8));
    const PlugPlan p = plan_plugs(pieces, sources, holes, least);

    std::set<BlockAddr> free;
    for (const format::Run& h : holes)
      for (std::uint32_t b = 0; b < h.blocks; ++b) free.insert(h.start + b);
    std::set<BlockAddr> moved;
    for (const PlugMove& m : p.moves)
      for (std::uint32_t b = 0; b < m.blocks; ++b) {
        EXPECT_TRUE(free.erase(m.to + b)) << "not a hole, or used twice";
        EXPECT_TRUE(moved.insert(m.from + b).second);
      }
    for (const Piece& s : pieces) {
      const bool emptied = std::ranges::count(p.emptied, s.source) > 0;
      for (std::uint32_t b = 0; b < s.blocks; ++b) EXPECT_EQ(moved.contains(s.start + b), emptied);
    }
    for (const PlugMove& m : p.moves)
      EXPECT_TRUE(m.blocks >= least || std::ranges::any_of(pieces, [&](const Piece& s) {
                    return s.start == m.from && s.blocks == m.blocks;
                  })) << "a part of " << m.blocks << " blocks";
  }
}

}  // namespace
}  // namespace varve::cleaner
