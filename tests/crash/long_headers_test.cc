// Chunks with more records than 32 blocks hold: replayed whole or not at all, and a sign in the superblock while there may be any.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "image_tools.h"
#include "mounts.h"
#include "support/good.h"
#include "support/world.h"
#include "sweep.h"

namespace varve::test {
namespace {

constexpr std::uint32_t kSegmentBlocks = 256;  // a header may have a quarter of them
constexpr std::uint64_t kBytes = 48u << 20;

std::string attributes(int files) {
  std::string steps;
  for (int i = 0; i < files; ++i) steps += fmt::format("create /{} 0644; setxattr /{} user.x 60000 {} set; ", i, i, i + 1);
  return steps;
}

std::uint16_t longest(const std::vector<FoundChunk>& chain) {
  std::uint16_t blocks = 0;
  for (const FoundChunk& chunk : chain) blocks = std::max(blocks, chunk.header.header_blocks);
  return blocks;
}

TEST(Hazards, a_long_header_is_replayed_whole_or_not_at_all) {
  for (const std::uint64_t order : {0, 7}) {
    CrashSetup setup;
    setup.bytes = kBytes;
    setup.segment_blocks = kSegmentBlocks;
    setup.completion_seed = order;
    const std::string steps = attributes(4) + "write /before 0 9000 77; fsync /before; create /after 0644; fsync /after";
    EXPECT_TRUE(good(sweep_all(setup, "create /before 0644", steps, exhaustive())));
  }
}

TEST(Hazards, a_mount_that_may_write_long_headers_says_so_until_it_ends) {
  World world({.bytes = kBytes, .image = {.segment_blocks = kSegmentBlocks}, .lockstep = {}, .options = {}});
  expect_sign_until_unmount(world, format::kIncompatLongHeaders, attributes(4) + "fsync /0", [](const std::vector<FoundChunk>& chain) {
    EXPECT_GT(longest(chain), format::kMaxChunkHeaderBlocks);
  });
}

TEST(Hazards, small_segments_have_short_headers_and_need_no_sign) {
  World world({.bytes = kBytes, .image = {.segment_blocks = 64}, .lockstep = {}, .options = {}});
  ASSERT_TRUE(good(world.start()));
  ASSERT_TRUE(good(run_script(world.steps, script(attributes(4) + "fsync /0"))));
  EXPECT_EQ(sign_in(world.device, format::kIncompatLongHeaders), 0U);
  world.fixture.crash();
  EXPECT_LE(longest(chain_of(world.device)), format::kMaxChunkHeaderBlocks);
  ASSERT_TRUE(world.fixture.mount().ok());
  EXPECT_TRUE(good(world.compare_now()));
}

}  // namespace
}  // namespace varve::test
