// What a read-only mount tells of a filesystem that was not unmounted.
#include <gtest/gtest.h>

#include <map>

#include <fmt/format.h>

#include "support/listener.h"
#include "support/manual_clock.h"
#include "support/mounted_test.h"

namespace varve::fs {
namespace {

class Replayed : public test::MountedTest {
 protected:
  Ino make(std::string_view path, std::uint64_t blocks) {
    const Ino file = fixture_.make(path, S_IFREG | 0644)->ino;
    write(file, 0, blocks);
    return file;
  }
  void write(Ino file, std::uint64_t first, std::uint64_t blocks) {
    EXPECT_TRUE(fixture_.write(file, first * kBlockSize, std::vector<std::byte>(blocks * kBlockSize, std::byte{'x'})).ok());
  }
  void shape(Ino file, FallocateMode mode, std::uint64_t first, std::uint64_t blocks) {
    const auto call = [&](Operation& op) { return fixture_.fs().fallocate(op, file, mode, first * kBlockSize, blocks * kBlockSize); };
    EXPECT_TRUE(fixture_.call(call).ok());
  }
  void truncate(Ino file, std::uint64_t blocks) {
    AttrChange change;
    change.size = blocks * kBlockSize;
    EXPECT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().setattr(op, file, change); }).ok());
  }
  void checkpoint() { ASSERT_TRUE(fixture_.checkpoint().ok()); }
  void crash(bool read_only) {
    if (fixture_.mounted()) fixture_.crash();
    fixture_.options().read_only = read_only;
    ASSERT_TRUE(fixture_.mount().ok());
  }
  std::uint64_t blocks(std::string_view path) { return fixture_.getattr(*fixture_.resolve(path))->blocks; }
};

TEST_F(Replayed, counts_of_blocks_are_those_of_a_recovery) {
  const Ino over = make("/overwritten", 20), longer = make("/longer", 20), shorter = make("/shorter", 20);
  const Ino punched = make("/punched", 20), reserved = make("/reserved", 20);
  make("/removed", 20);
  make("/untouched", 20);
  checkpoint();
  make("/new", 256);
  write(over, 3, 9);
  write(over, 5, 2);
  write(longer, 15, 15);
  truncate(shorter, 7);
  shape(punched, FallocateMode::punch_hole, 4, 6);
  write(punched, 5, 1);
  shape(reserved, FallocateMode::allocate, 10, 30);
  write(reserved, 25, 3);
  shape(reserved, FallocateMode::zero_range, 2, 4);
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, kRootIno, "removed"); }).ok());
  const std::map<std::string, std::uint64_t> expected{{"/overwritten", 20}, {"/longer", 30}, {"/shorter", 7}, {"/punched", 15},
                                                      {"/reserved", 40}, {"/untouched", 20}, {"/new", 256}};
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().sync(op); }).ok());
  for (const bool read_only : {true, false}) {
    crash(read_only);
    for (const auto& [path, count] : expected) EXPECT_EQ(blocks(path), count) << path << (read_only ? ", read-only" : "");
    EXPECT_TRUE(fixture_.resolve("/removed").fails_with(Errc::not_found));
  }
}

TEST_F(Replayed, free_space_is_that_of_a_recovery) {
  const Ino shorter = make("/shorter", 2000);
  make("/removed", 3000);
  for (int i = 0; i < 40; ++i) make(fmt::format("/old{}", i), 1);
  checkpoint();
  make("/new", 1500);
  truncate(shorter, 100);
  for (int i = 0; i < 100; ++i) make(fmt::format("/new{}", i), 0);
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, kRootIno, "removed"); }).ok());
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().unlink(op, kRootIno, fmt::format("old{}", i)); }).ok());
  ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().sync(op); }).ok());
  const auto space = [&] { return *fixture_.call([&](Operation& op) { return fixture_.fs().statfs(op); }); };
  crash(true);
  const SpaceInfo replayed = space();
  crash(false);
  const SpaceInfo recovered = space();
  EXPECT_NEAR(static_cast<double>(replayed.free), static_cast<double>(recovered.free), 64);
  EXPECT_EQ(replayed.inodes - replayed.inodes_free, recovered.inodes - recovered.inodes_free);
}

// What an operation does next to the largest size that a file may have is in the log as a recovery understands it.
TEST_F(Replayed, changes_next_to_the_largest_size) {
  constexpr std::uint64_t kMost = format::kMaxFileBytes;
  const Ino file = fixture_.make("/file", S_IFREG | 0644)->ino;
  const auto resize = [&](std::uint64_t size) {
    AttrChange change;
    change.size = size;
    return fixture_.call([&](Operation& op) { return fixture_.fs().setattr(op, file, change); }).ok();
  };
  const auto shape = [&](FallocateMode mode, std::uint64_t offset, std::uint64_t length) {
    return fixture_.call([&](Operation& op) { return fixture_.fs().fallocate(op, file, mode, offset, length); }).ok();
  };
  const std::vector<std::byte> bytes(5000, std::byte{'x'});
  unsigned number = 0;
  for (const std::uint64_t size : {kMost, kMost - 1, kMost - 4094, kMost - 4095, kMost - 4096, kMost - 4097, kMost - 8191, kMost - 8192}) {
    ASSERT_TRUE(resize(kMost) && resize(size));
    ASSERT_TRUE(fixture_.write(file, size - bytes.size(), bytes).ok());
    for (const FallocateMode mode : {FallocateMode::punch_hole, FallocateMode::zero_range, FallocateMode::zero_range_keep_size,
                                     FallocateMode::allocate, FallocateMode::allocate_keep_size})
      for (const std::uint64_t length : {1, 4095, 4096, 4097, 8192}) {
        ASSERT_TRUE(shape(mode, size - length, length));
        (void)shape(mode, size - 1, length);
        ASSERT_TRUE(resize(size - 1) && resize(size));
      }
    const std::string later = fmt::format("/later{}", number++);
    ASSERT_TRUE(fixture_.make(later, S_IFREG | 0644).ok());
    ASSERT_TRUE(fixture_.call([&](Operation& op) { return fixture_.fs().sync(op); }).ok());
    crash(false);
    EXPECT_TRUE(fixture_.resolve(later).ok()) << size;
    EXPECT_EQ(fixture_.getattr(file)->size, size);
  }
}

// On which each look at it takes a second.
class SlowClock : public test::ManualClock {
 public:
  std::uint64_t monotonic_ns() override {
    advance(1'000'000'000);
    return ManualClock::monotonic_ns();
  }
};

TEST_F(Replayed, a_recovery_that_takes_long_says_so_once) {
  for (int i = 0; i < 8; ++i) {
    make(fmt::format("/{}", i), 1);
    ASSERT_TRUE(fixture_.seal().ok());
  }
  const test::Listener heard;
  crash(false);
  EXPECT_EQ(heard.count("replaying the log"), 0U);
  for (int i = 0; i < 8; ++i) {
    make(fmt::format("/new {}", i), 1);
    ASSERT_TRUE(fixture_.seal().ok());
  }
  SlowClock clock;
  fixture_.options().clock = &clock;
  crash(false);
  EXPECT_EQ(heard.count("replaying the log"), 1U) << heard.text();
  fixture_.crash();
}

}  // namespace
}  // namespace varve::fs
