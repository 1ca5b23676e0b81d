// How writing ends: by a failure, and by an invariant that does not hold.
#include "device/faults.h"

#include <gtest/gtest.h>

#include <optional>

#include "io/mem_device.h"

namespace varve::device {
namespace {

class FaultsTest : public ::testing::Test {
 protected:
  FaultsTest() {
    faults_.on_read_only([this](const Error& why) {
      ++calls_;
      told_ = why.message();
    });
  }
  io::MemDevice device_{1 << 20};
  Faults faults_{device_, Clock::system(), {}, false};
  int calls_ = 0;
  std::string told_;
};

TEST_F(FaultsTest, TheFirstReasonStays) {
  faults_.go_read_only(Error(Errc::io, "the first"));
  faults_.go_read_only(Error(Errc::no_space, "the second"));
  EXPECT_TRUE(faults_.read_only());
  EXPECT_EQ(faults_.reason(), "the first");
  EXPECT_EQ(calls_, 1);
  EXPECT_EQ(faults_.counts().other, 1U);
  EXPECT_TRUE(faults_.refusal().is(Errc::read_only));
}

TEST_F(FaultsTest, ABrokenInvariantStopsWritingAtOnceAndIsToldLater) {
  const int two = 2;
  EXPECT_FALSE(INVARIANT(two == 3));
  EXPECT_TRUE(faults_.read_only());
  EXPECT_EQ(calls_, 0);  // under whatever lock it was found
  EXPECT_NE(faults_.reason().find("\"two == 3\" does not hold (tests/store/faults_test.cc:"), std::string::npos) << faults_.reason();
  faults_.settle_alarm();
  faults_.settle_alarm();
  EXPECT_EQ(calls_, 1);
  EXPECT_NE(told_.find("two == 3"), std::string::npos);
}

TEST_F(FaultsTest, WhatHoldsCostsNothing) {
  EXPECT_TRUE(INVARIANT(calls_ == 0));
  EXPECT_FALSE(faults_.read_only());
  faults_.settle_alarm();
  EXPECT_EQ(calls_, 0);
}

TEST_F(FaultsTest, RemembersTheFirstErrorAndTheLast) {
  faults_.note(Errc::corrupt, BlockAddr{7}, Ino{1});
  faults_.note(Errc::corrupt, BlockAddr{8}, Ino{2});
  faults_.note(Errc::io, BlockAddr{9}, Ino{3});
  const auto [first, last] = faults_.first_and_last();
  EXPECT_EQ(first.address, BlockAddr{7});
  EXPECT_EQ(last.address, BlockAddr{9});
  EXPECT_EQ(faults_.counts().all(), 3U);
}

using Invariants = ::testing::Test;

TEST(InvariantsDeathTest, WithNothingToTellTheProgramEnds) {
  const int two = 2;
  EXPECT_DEATH((void)INVARIANT(two == 3), "a fault in the program was found in time: \"two == 3\" does not hold");
  EXPECT_DEATH(MEMORY_INVARIANT(two == 3), "two == 3");
}

}  // namespace
}  // namespace varve::device
