// A test of one small filesystem in memory: made and mounted before it begins.
#pragma once

#include <gtest/gtest.h>

#include "io/mem_device.h"
#include "support/fs_fixture.h"

namespace varve::test {

class MountedTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_image(device_, image_).ok());
    ASSERT_TRUE(fixture_.mount().ok());
  }

  // A fresh look at everything: from the trees.
  void remount() {
    ASSERT_TRUE(fixture_.unmount().ok());
    ASSERT_TRUE(fixture_.mount().ok());
  }

  ImageParameters image_;  // may be changed before
  io::MemDevice device_{64u << 20};
  ManualClock clock_;
  SeededRandom random_{7};
  FsFixture fixture_{device_, test_options(clock_, random_)};
};

}  // namespace varve::test
