// A log with gaps, as on a disk that turns: it is replayed whole, and damage in it is told from a crash wherever it goes on.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "image_tools.h"
#include "log/recovery.h"
#include "mounts.h"
#include "support/fault_device.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"

namespace varve::test {
namespace {

constexpr std::uint32_t kBlocksOfASegment = 64, kUsedGap = 20, kLargeGap = 48;

WorldParameters world_with_gaps(std::uint32_t gap) {
  return {.bytes = 8u << 20, .image = {.segment_blocks = kBlocksOfASegment}, .lockstep = {},
          .options = [gap](fs::Options& options) { options.chunk_gap = gap; }};
}

CrashSetup with_gaps(std::uint32_t gap) {
  CrashSetup setup;
  setup.segment_blocks = kBlocksOfASegment;
  setup.chunk_gap = gap;
  return setup;
}

// Enough to go round in two segments, some chunks too large for a gap, and checkpoints in between.
std::string synced_lines(int lines) {
  std::string steps;
  for (int i = 0; i < lines; ++i) {
    steps += fmt::format("write /a {} 4096 {}; fsync /a; ", i * 4096, i + 10);
    if (i % 13 == 5) steps += fmt::format("write /b 0 {} {}; seal; ", 100'000, i);
  }
  return steps;
}

constexpr const char* kTwoFiles = "create /a 0644; create /b 0644";

TEST(Hazards, a_log_with_gaps_is_replayed_up_to_any_cut) {
  for (const std::uint32_t gap : {1U, kUsedGap}) {
    CrashSetup setup = with_gaps(gap);
    for (const std::uint64_t order : {0, 7}) {
      setup.completion_seed = order;
      EXPECT_TRUE(good(sweep_all(setup, kTwoFiles, synced_lines(20), exhaustive())));
    }
    EXPECT_TRUE(good(sweep_all(setup, kTwoFiles, synced_lines(9) + "checkpoint; " + synced_lines(9), exhaustive())));
  }
}

// Of each chunk but the last two.
void expect_damage_is_seen(const io::MemDevice& image, const std::vector<FoundChunk>& chain) {
  for (std::size_t i = 0; i + 2 < chain.size(); ++i) {
    const auto damaged = image.snapshot();
    flip_bit(*damaged, chain[i].header.address, (format::kChunkHeaderBytes + 3) * 8);
    const Mounted mounted(*damaged);
    EXPECT_TRUE(mounted.status.fails_with(Errc::needs_fsck)) << "chunk " << i << " of " << chain.size() << " is gone without a word";
  }
}

// The chunk that follows the damaged one may stand in front of it, or in the next segment.
TEST(Hazards, H9_damage_is_seen_however_the_chain_goes_on) {
  const CrashSetup setup = with_gaps(kUsedGap);
  Recording recording(setup, prepare(setup, script(kTwoFiles)), script(synced_lines(60)));
  ASSERT_TRUE(good(recording.failed()));
  const auto image = recording.device().image_now();
  const auto chain = chain_of(*image);
  ASSERT_GE(chain.size(), 60U);
  unsigned backward = 0;
  std::set<std::uint64_t> segments;
  for (std::size_t i = 0; i + 2 < chain.size(); ++i) {
    const auto& header = chain[i].header;
    backward += chain[i + 1].header.address < header.address;
    segments.insert(header.next_run.start.v);
  }
  EXPECT_GE(backward, 6U) << "the chain has gone round";
  EXPECT_GE(segments.size(), 2U);
  expect_damage_is_seen(*image, chain);
}

// After a recovery only the first chunk of the segment says where the log goes on: nobody else has named that place.
TEST(Hazards, H9_damage_is_seen_where_the_second_chunk_of_a_segment_is_large) {
  World world(world_with_gaps(kLargeGap));
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(world.run(script(std::string(kTwoFiles) + "; " + synced_lines(3)))));
  world.fixture.crash();
  ASSERT_TRUE(world.fixture.mount().ok());
  ASSERT_TRUE(good(run_script(world.steps, script("write /a 0 4096 1; fsync /a; write /b 0 61440 2; fsync /b; " + synced_lines(5)))));
  world.fixture.crash();
  const auto chain = chain_of(world.device);
  ASSERT_GE(chain.size(), 6U);
  expect_damage_is_seen(world.device, chain);
}

// A read that fails may take a disk seconds. The log is looked at block by block, its segment more than once.
TEST(Hazards, H11_a_block_that_cannot_be_read_in_a_gap_is_not_tried_again_and_again) {
  CrashSetup setup = with_gaps(kUsedGap);
  setup.bytes = 64u << 20;
  setup.segment_blocks = 512;
  Recording recording(setup, prepare(setup, script(kTwoFiles)), script(synced_lines(60)));
  ASSERT_TRUE(good(recording.failed()));
  const auto image = recording.device().image_now();
  const auto chain = chain_of(*image);
  ASSERT_FALSE(chain.empty());
  std::set<BlockAddr> written;
  for (const FoundChunk& chunk : chain)
    for (BlockAddr block = chunk.header.address; block != chunk.header.end(); ++block) written.insert(block);
  BlockAddr gap = chain.back().header.address;
  while (written.contains(gap)) ++gap;
  FaultDevice faulty(*image);
  faulty.add({.kind = io::IoKind::read, .times = Fault::kForEver, .touches_block = gap.v});
  const auto found = log::recover_chain(faulty, superblock_of(*image), [](const format::Chunk&) { return Status(); });
  ASSERT_TRUE(found.ok()) << found.error().message();
  EXPECT_EQ(found->chunks, chain.size());
  EXPECT_GT(faulty.hits(), 0U);
  EXPECT_LT(faulty.hits(), 40U);
}

TEST(Hazards, a_mount_that_may_leave_gaps_says_so_until_it_ends) {
  World world(world_with_gaps(kUsedGap));
  const std::string steps = std::string(kTwoFiles) + "; " + synced_lines(30);
  expect_sign_until_unmount(world, format::kIncompatGaps, steps, [](const std::vector<FoundChunk>& chain) {
    EXPECT_GE(std::ranges::count_if(chain, [](const FoundChunk& chunk) { return chunk.header.elsewhere.blocks > 0; }), 20);
  });
}

TEST(Hazards, a_filesystem_with_gaps_can_be_filled) {
  World world(world_with_gaps(kUsedGap));
  ASSERT_TRUE(good(world.start()));
  std::string fill = std::string(kTwoFiles) + "; ";
  for (int i = 0; i < 60; ++i) fill += fmt::format("create /f{} 0644; write /f{} 0 100000 {}; ", i, i, i);
  EXPECT_TRUE(good(world.run(script(fill + synced_lines(100) + "unlink /f1; sync; " + synced_lines(20)))));
  EXPECT_TRUE(good(world.finish()));
}

}  // namespace
}  // namespace varve::test
