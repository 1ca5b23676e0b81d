#include "base/types.h"
#include "daemon/memory_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/server.h"

namespace varve::fuse {
namespace {

using ::testing::HasSubstr;

TEST(MemoryPlan, NothingIsSharedOutTwice) {
  for (const unsigned threads : {1U, 2U, 4U, 16U, 64U})
    for (std::size_t bound = 1; bound <= 4096; ++bound) {
      const auto plan = daemon::plan_memory(bound * kMiB, threads);
      if (!plan.ok()) continue;
      EXPECT_EQ(plan->threads, threads);
      EXPECT_GE(plan->request_bytes, threads * daemon::Server::kLeastPerThread);
      EXPECT_LE(2 * plan->request_bytes + plan->engine_bytes / 4 * 3 + 16 * kMiB, bound * kMiB) << bound << " MiB, " << threads;
      EXPECT_GE(plan->engine_bytes, 7 * kMiB);
      EXPECT_LE(plan->large_bytes, plan->request_bytes);
    }
}

TEST(MemoryPlan, MoreIsNeverLess) {
  std::size_t engine = 0, requests = 0;
  for (std::size_t bound = 64; bound <= 4096; ++bound) {
    const auto plan = daemon::plan_memory(bound * kMiB, 2);
    ASSERT_TRUE(plan.ok()) << bound;
    EXPECT_GE(plan->request_bytes, requests);
    EXPECT_GE(plan->engine_bytes + kMiB, engine) << bound;
    requests = plan->request_bytes;
    engine = plan->engine_bytes;
  }
}

TEST(MemoryPlan, WhatItRefusesItSaysTheLeastOf) {
  for (const unsigned threads : {1U, 3U, 64U}) {
    const auto refused = daemon::plan_memory(kMiB, threads);
    ASSERT_TRUE(refused.fails_with(Errc::invalid));
    const std::string text = refused.error().message();
    const std::size_t least = std::stoul(text.substr(text.find("at least ") + 9));
    EXPECT_TRUE(daemon::plan_memory(least * kMiB, threads).ok()) << text;
    EXPECT_FALSE(daemon::plan_memory((least - 1) * kMiB, threads).ok()) << text;
  }
}

TEST(MemoryPlan, ThreadsThatNobodyHasAskedForGiveWay) {
  EXPECT_EQ(daemon::plan_memory(32 * kMiB, 0).value().threads, 1U);
  EXPECT_GE(daemon::plan_memory(0, 0).value().bound, 256 * kMiB);
  EXPECT_GT(daemon::plan_memory(0, 64).value().bound, 256 * kMiB) << "as many as are asked for fit, if no bound is";
}

MemoryGroup group_of(std::uint64_t mib) { return {mib * kMiB, "/a/file", true}; }
MemoryGroup no_limit() { return {MemoryGroup::kNone, "", true}; }
daemon::MemoryPlan mounted_in(const MemoryGroup& group, unsigned threads) {
  return daemon::plan_memory(daemon::usual_bound(group, threads), threads).value();
}

TEST(MemoryPlan, AGroupThatHasLessIsFollowed) {
  EXPECT_EQ(daemon::usual_bound({}, 0), 256 * kMiB);
  EXPECT_EQ(daemon::usual_bound(group_of(4096), 0), 256 * kMiB);
  EXPECT_EQ(daemon::usual_bound(group_of(200), 0), 100 * kMiB);
  EXPECT_EQ(daemon::usual_bound(group_of(64), 0), 32 * kMiB);
}

TEST(MemoryPlan, WhateverTheGroupHasTheMountBegins) {
  for (const unsigned threads : {0U, 1U, 8U, 64U})
    for (const std::uint64_t mib : {1, 24, 64, 100, 300, 512, 10'000}) {
      const auto plan = daemon::plan_memory(daemon::usual_bound(group_of(mib), threads), threads);
      ASSERT_TRUE(plan.ok()) << mib << " MiB, " << threads << " threads: " << plan.error().message();
      if (mib >= 300 && threads <= 8) {
        EXPECT_LE(plan->bound, mib * kMiB / 2);
      }
    }
}

TEST(MemoryPlan, ALimitThatChangesIsFollowedAsAtTheMount) {
  for (const std::uint64_t before : {64, 100, 200, 4096})
    for (const std::uint64_t now : {48, 64, 130, 300, 4096}) {
      const daemon::MemoryPlan plan = mounted_in(group_of(before), 1);
      const auto next = daemon::followed(plan, group_of(now), 0);
      const std::size_t expected = daemon::usual_bound(group_of(now), 1);
      EXPECT_EQ(next ? next->bound : plan.bound, expected) << before << " MiB, then " << now;
      EXPECT_EQ(next.has_value(), expected != plan.bound) << before << " MiB, then " << now;
      if (!next) continue;
      EXPECT_EQ(next->threads, 1U);
      const daemon::MemoryPlan& smaller = expected < plan.bound ? *next : plan;
      const daemon::MemoryPlan& larger = expected < plan.bound ? plan : *next;
      EXPECT_LE(smaller.engine_bytes, larger.engine_bytes) << before << " MiB, then " << now;
      EXPECT_LE(smaller.request_bytes, larger.request_bytes) << before << " MiB, then " << now;
    }
  EXPECT_EQ(daemon::followed(mounted_in(group_of(64), 1), no_limit(), 0)->bound, 256 * kMiB);
}

TEST(MemoryPlan, AGroupThatIsAsItWasChangesNothing) {
  for (const unsigned threads : {0U, 1U, 4U, 64U})
    for (const std::uint64_t mib : {1, 24, 64, 100, 300, 512, 10'000})
      EXPECT_FALSE(daemon::followed(mounted_in(group_of(mib), threads), group_of(mib), 0)) << mib << " MiB, " << threads << " threads";
}

TEST(MemoryPlan, ThreadsThatServeKeepWhatTheyNeed) {
  const daemon::MemoryPlan plan = mounted_in(no_limit(), 4);
  const auto next = daemon::followed(plan, group_of(24), 0);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->threads, 4U);
  EXPECT_GE(next->request_bytes, 4 * daemon::Server::kLeastPerThread);
  EXPECT_LT(next->bound, plan.bound);
}

TEST(MemoryPlan, ABoundThatSomebodyHasChosenStays) {
  const daemon::MemoryPlan plan = daemon::plan_memory(200 * kMiB, 2).value();
  EXPECT_FALSE(daemon::followed(plan, group_of(64), 200 * kMiB));
  EXPECT_FALSE(daemon::followed(plan, no_limit(), 200 * kMiB));
}

TEST(MemoryPlan, AGroupThatCannotBeReadSaysNothing) { EXPECT_FALSE(daemon::followed(mounted_in(group_of(64), 1), MemoryGroup(), 0)); }

}  // namespace
}  // namespace varve::fuse
