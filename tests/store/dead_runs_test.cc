// What a device may be told of segments that stay in use.
#include "tree/dead_runs.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace varve::tree {
namespace {

// A segment as text: '#' is live.
std::vector<std::byte> bits_of(const std::string& text) {
  std::vector<std::byte> bits((text.size() + 7) / 8, std::byte{0});
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '#') bits[i / 8] |= std::byte{1} << (i % 8);
  return bits;
}

std::vector<format::Run> runs_of(DeadRuns& dead, const std::string& before, const std::string& now, DeadRuns::Which which,
                                 BlockAddr start = BlockAddr{1024}) {
  dead.add(start, static_cast<std::uint32_t>(now.size()), bits_of(before), bits_of(now), which);
  return dead.take();
}

using Runs = std::vector<format::Run>;

TEST(DeadRuns, are_the_blocks_that_have_just_died) {
  DeadRuns dead(1);
  EXPECT_EQ(runs_of(dead, "####..######", "##....####..", DeadRuns::Which::new_ones),
            (Runs{{BlockAddr{1026}, 2}, {BlockAddr{1034}, 2}}));
  EXPECT_EQ(runs_of(dead, "####..######", "##....####..", DeadRuns::Which::all), (Runs{{BlockAddr{1026}, 4}, {BlockAddr{1034}, 2}}));
  EXPECT_EQ(runs_of(dead, "##..", "##..", DeadRuns::Which::new_ones), Runs{});
}

TEST(DeadRuns, are_whole_units_of_which_a_part_has_just_died) {
  DeadRuns dead(4);
  //                       |   |   |   |
  EXPECT_EQ(runs_of(dead, "#...........####", ".............###", DeadRuns::Which::new_ones), (Runs{{BlockAddr{1024}, 4}}));
  EXPECT_EQ(runs_of(dead, "################", "##...........###", DeadRuns::Which::new_ones), (Runs{{BlockAddr{1028}, 8}}));
}

TEST(DeadRuns, are_counted_from_the_beginning_of_the_disk) {
  DeadRuns dead(4, 3);  // a partition at block 3: unit boundaries are at 1, 5, 9 of it
  EXPECT_EQ(runs_of(dead, "##########", "..........", DeadRuns::Which::new_ones, BlockAddr{1000}), (Runs{{BlockAddr{1001}, 8}}));
}

TEST(DeadRuns, of_neighbouring_segments_stay_apart) {
  DeadRuns dead(1);
  dead.add(BlockAddr{64}, 8, bits_of("########"), bits_of("####...."), DeadRuns::Which::new_ones);
  dead.add(BlockAddr{72}, 8, bits_of("########"), bits_of("....####"), DeadRuns::Which::new_ones);
  EXPECT_EQ(dead.take(), (Runs{{BlockAddr{68}, 4}, {BlockAddr{72}, 4}})) << "each segment is asked for by itself";
  EXPECT_EQ(dead.take(), Runs{});
}

TEST(DeadRuns, do_not_fill_memory) {
  DeadRuns dead(1);
  const std::string before(1024, '#');
  std::string now = before;
  for (std::size_t i = 0; i < now.size(); i += 2) now[i] = '.';
  for (std::uint64_t i = 0; i < 200; ++i) dead.add(BlockAddr{i * 1024}, 1024, bits_of(before), bits_of(now), DeadRuns::Which::new_ones);
  EXPECT_EQ(dead.take().size(), DeadRuns::kMost);
}

// Against the definition, block by block.
TEST(DeadRuns, never_name_a_live_block_and_leave_out_no_unit) {
  std::mt19937_64 random(25);
  for (int turn = 0; turn < 2000; ++turn) {
    const std::uint32_t unit = 1u << random() % 5, blocks = 16 + random() % 200;
    const std::uint64_t front = random() % 40, start = random() % 1000;
    std::string before(blocks, '.'), now(blocks, '.');
    const unsigned often = 1 + random() % 12;
    for (std::uint32_t i = 0; i < blocks; ++i) {
      before[i] = random() % often ? '.' : '#';
      now[i] = random() % often ? '.' : before[i];
    }
    DeadRuns dead(unit, front);
    std::string named(blocks, ' ');
    for (const format::Run& run : runs_of(dead, before, now, DeadRuns::Which::new_ones, BlockAddr{start}))
      for (std::uint32_t i = 0; i < run.blocks; ++i) named[run.start.v - start + i] = 'x';
    for (std::uint32_t i = 0; i < blocks; ++i) {
      const std::uint64_t from_front = (front + start + i) / unit * unit;  // the unit that block i is in
      bool expected = from_front >= front + start && from_front + unit <= front + start + blocks;
      bool news = false;
      for (std::uint64_t b = from_front; expected && b < from_front + unit; ++b) {
        const std::uint64_t index = b - front - start;
        if (now[index] == '#') expected = false;
        news |= before[index] == '#';
      }
      ASSERT_EQ(named[i] == 'x', expected && news) << "turn " << turn << ", block " << i;
    }
  }
}

}  // namespace
}  // namespace varve::tree
