#include "store/unsealed.h"

#include <gtest/gtest.h>

#include "format/chunk.h"

namespace varve::store {
namespace {

TEST(Unsealed, LetsNoMoreRecordsInThanOneChunkHolds) {
  log::Gate gate;
  Unsealed unsealed;
  const log::Gate::Pass pass(gate);
  EXPECT_TRUE(unsealed.reserve_records(format::kMaxChunkRecordBytes - 100));
  EXPECT_FALSE(unsealed.reserve_records(101));
  EXPECT_EQ(unsealed.reserved_records(), format::kMaxChunkRecordBytes - 100);
  EXPECT_TRUE(unsealed.reserve_records(100));
  unsealed.give_back_records(100);
  EXPECT_TRUE(unsealed.reserve_records(100));
}

TEST(Unsealed, IsAsOldAsTheOldestOfIt) {
  log::Gate gate;
  Unsealed unsealed;
  InodeDelta first(Ino{5}), second(Ino{6});
  const log::Gate::Closure closed(gate);
  EXPECT_FALSE(unsealed.any());
  unsealed.add(first, 0);  // a clock may stand at 0, which means that there is nothing
  unsealed.add(second, 700);
  EXPECT_EQ(unsealed.since_ns(), 1U);
  EXPECT_EQ(unsealed.deltas().size(), 2U);
  unsealed.clear();
  EXPECT_FALSE(unsealed.any());
  EXPECT_EQ(unsealed.reserved_records(), 0U);
}

}  // namespace
}  // namespace varve::store
