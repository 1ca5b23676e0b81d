// What years of writing count up to: stored clocks of 32 bits begin anew after 2^32 units, 16384 devices full.
#include <gtest/gtest.h>

#include <vector>

#include "aging.h"
#include "cleaner/cleaner.h"
#include "cleaner/workbench.h"
#include "store/log_clock.h"
#include "store/store.h"
#include "support/good.h"

namespace varve::test {
namespace {

constexpr std::uint64_t kAnew = 1ULL << 32;  // units, which are blocks on a small device

// Ages of all segments with blocks of files that the cleaner looks at.
std::vector<std::uint64_t> ages(store::Store& store) {
  auto rule = cleaner::VictimRule::make("greedy");
  auto placement = cleaner::make_placement("none", {});
  cleaner::BadBlocks bad;
  cleaner::Task task;
  const cleaner::Workbench bench(store, **rule, **placement, bad, task, [](const std::string&) {});
  std::vector<std::uint64_t> found;
  for (const cleaner::SegmentFacts& segment : bench.facts())
    if (!segment.holds_nodes) found.push_back(segment.age);
  return found;
}

class Years : public ::testing::TestWithParam<const char*> {};

TEST_P(Years, StoredClocksBeginAnew) {
  World world(world_of(GetParam(), "none"));
  ASSERT_EQ(world.start(), "");
  ASSERT_EQ(world.fixture.store().super().clock_unit, 1U);
  world.fixture.store().log_clock().advance(kAnew - 3 * kAgedBlocks / 2 - world.fixture.store().log_clock().now());
  Aging aging(world, 1);
  ASSERT_EQ(aging.fill(), "");
  for (int part = 0; part < 4; ++part) {
    ASSERT_EQ(aging.write(kAgedBlocks / 2), "");
    ASSERT_EQ(world.finish(), "") << "part " << part;  // the checker looks at clocks, too
  }
  EXPECT_GT(world.fixture.store().log_clock().now(), kAnew);
  const auto found = ages(world.fixture.store());
  ASSERT_FALSE(found.empty());
  for (const std::uint64_t age : found) EXPECT_LT(age, 8 * kAgedBlocks) << "nothing is older than this test";
}

INSTANTIATE_TEST_SUITE_P(Rules, Years, ::testing::Values("greedy", "cost-benefit"));

}  // namespace
}  // namespace varve::test
