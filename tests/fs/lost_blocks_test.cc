// Blocks of files that cannot be read, or are damaged: each failed read counts, by kind and with its place. The others are none the worse.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "device/faults.h"
#include "fs/filesystem.h"
#include "image_tools.h"
#include "io/mem_device.h"
#include "store/store.h"
#include "support/fault_device.h"
#include "support/fs_fixture.h"
#include "support/listener.h"
#include "support/pattern.h"

namespace varve::fs {
namespace {

class LostBlocks : public testing::Test {
 protected:
  static constexpr std::uint64_t kBlocks = 64;

  void SetUp() override {
    ASSERT_TRUE(test::make_image(memory_, {}).ok());
    ASSERT_TRUE(fixture_.mount().ok());
    const auto made = fixture_.make("/file", 0100644);
    ASSERT_TRUE(made.ok());
    file_ = made->ino;
    for (std::uint64_t block = 0; block < kBlocks; ++block) ASSERT_TRUE(fixture_.write(file_, block * kBlockSize, bytes_of(block)).ok());
    ASSERT_TRUE(fixture_.checkpoint().ok());
    for (std::uint64_t block = 0; block < kBlocks; ++block) places_.push_back(test::find_block(memory_, bytes_of(block)).at(0).v);
    ASSERT_EQ(places_[kBlocks - 1], places_[0] + kBlocks - 1) << "one request reads it all";
  }
  void TearDown() override { fixture_.crash(); }

  static std::vector<std::byte> bytes_of(std::uint64_t block) { return test::pattern_bytes(1, block * kBlockSize, kBlockSize); }

  void make_unreadable(std::uint64_t block, std::uint64_t times = test::Fault::kForEver, int error = EIO) {
    device_.add({.kind = io::IoKind::read, .times = times, .touches_block = places_[block], .error = error});
  }
  void damage(std::uint64_t block) { test::flip_bit(memory_, BlockAddr{places_[block]}, 100); }
  auto read(std::uint64_t first, std::uint64_t blocks) { return fixture_.read(file_, first * kBlockSize, blocks * kBlockSize); }
  device::FaultCounts counts() { return fixture_.fs().status().faults; }

  io::MemDevice memory_{64u << 20};
  test::FaultDevice device_{memory_};
  test::ManualClock clock_;
  SeededRandom random_{1};
  test::FsFixture fixture_{device_, test::test_options(clock_, random_)};
  Ino file_;
  std::vector<std::uint64_t> places_;  // on the device, of each block
};

TEST_F(LostBlocks, AFailedReadCountsWithItsPlaceAndIsLogged) {
  const test::Listener heard;
  make_unreadable(17);
  EXPECT_TRUE(read(0, kBlocks).fails_with(Errc::io));
  EXPECT_EQ(counts().unreadable, 1U);
  EXPECT_EQ(counts().all(), 1U);
  EXPECT_EQ(counts().places_last_hour, 1U);
  const auto status = fixture_.fs().status();
  EXPECT_EQ(status.lifetime.errors, 1U);
  for (const format::ErrorEvent& event : {status.first_error, status.last_error}) {
    EXPECT_EQ(event.code, static_cast<std::uint32_t>(Errc::io));
    EXPECT_EQ(event.address.v, places_[17]);
    EXPECT_EQ(event.ino, file_);
  }
  EXPECT_EQ(heard.count(fmt::format("inode {}: block 17 of the file (block {} of", file_, places_[17])), 1U) << heard.text();
  EXPECT_TRUE(read(0, 17).ok());
  EXPECT_TRUE(read(18, kBlocks - 18).ok());
  EXPECT_EQ(counts().all(), 1U);
}

// An operation tries again after each wait. All that fail in it count, each once.
TEST_F(LostBlocks, EachBlockOfOneReadCountsOnce) {
  for (const std::uint64_t block : {3, 4, 40}) make_unreadable(block);
  EXPECT_TRUE(read(0, kBlocks).fails_with(Errc::io));
  EXPECT_EQ(counts().unreadable, 3U);
  EXPECT_EQ(counts().places_last_day, 3U);
}

// As when a path fails over: what is read again block by block is all there.
TEST_F(LostBlocks, AnErrorThatPassesIsNone) {
  make_unreadable(5, 1);
  const auto bytes = read(0, kBlocks);
  ASSERT_TRUE(bytes.ok());
  for (std::uint64_t block = 0; block < kBlocks; ++block)
    EXPECT_EQ(std::memcmp(bytes->data() + block * kBlockSize, bytes_of(block).data(), kBlockSize), 0) << block;
  EXPECT_EQ(counts().all(), 0U);
  EXPECT_EQ(device_.hits(), 1U);
}

TEST_F(LostBlocks, DamageIsAnotherKind) {
  damage(9);
  EXPECT_TRUE(read(0, kBlocks).fails_with(Errc::corrupt));
  EXPECT_EQ(counts().damaged, 1U);
  EXPECT_EQ(counts().unreadable, 0U);
  EXPECT_EQ(counts().places_last_day, 1U);
}

// A disk says ENODATA of a sector that it cannot read: programs must not take it for an answer about the file.
TEST_F(LostBlocks, WhateverTheDeviceCallsIt) {
  make_unreadable(9, test::Fault::kForEver, ENODATA);
  EXPECT_TRUE(read(9, 1).fails_with(Errc::io));
  EXPECT_EQ(counts().unreadable, 1U);
}

TEST_F(LostBlocks, ReadAgainAndAgainItIsOnePlaceAndOneLine) {
  const test::Listener heard;
  make_unreadable(9);
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(read(9, 1).fails_with(Errc::io));
  EXPECT_EQ(counts().unreadable, 30U);
  EXPECT_EQ(counts().places_last_hour, 1U);
  EXPECT_EQ(heard.count("\n"), 1U) << heard.text();
}

TEST_F(LostBlocks, ADeviceThatIsGoneDoesNotFillTheLog) {
  const test::Listener heard;
  for (std::uint64_t block = 0; block < kBlocks; ++block) make_unreadable(block);
  EXPECT_TRUE(read(0, kBlocks).fails_with(Errc::io));
  EXPECT_EQ(counts().places_last_hour, kBlocks);
  EXPECT_EQ(heard.count("cannot be read"), 20U) << heard.text();
  EXPECT_EQ(heard.count("no more are named"), 1U) << heard.text();
}

// A write of a part of a block reads the rest of it.
TEST_F(LostBlocks, AWriteThatMustReadCountsToo) {
  make_unreadable(9);
  const std::vector<std::byte> few(10);
  EXPECT_FALSE(fixture_.write(file_, 9 * kBlockSize + 5, few).ok());
  EXPECT_EQ(counts().unreadable, 1U);
}

}  // namespace
}  // namespace varve::fs
