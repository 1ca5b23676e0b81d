// What operations cost the device: requests and bytes, counted below the engine.
#include <gtest/gtest.h>

#include "checkpoint/checkpoints.h"
#include "device/io_context.h"
#include "fs/engine.h"
#include "io/mem_device.h"
#include "io/trace_device.h"
#include "store/store.h"
#include "support/fs_fixture.h"
#include "support/good.h"
#include "support/manual_clock.h"

namespace varve::test {
namespace {

using io::IoKind;

class DeviceRequests : public ::testing::Test {
 protected:
  void start(bool discard = false) {
    ASSERT_TRUE(make_image(device_, {.segment_blocks = 64}).ok());
    fixture_.options().discard = discard;
    ASSERT_TRUE(fixture_.mount().ok());
    const auto made = fixture_.make("/f", S_IFREG | 0644);
    ASSERT_TRUE(made.ok());
    file_ = made->ino;
    write(0, 1);
    sync();
  }

  void write(std::uint64_t block, std::size_t blocks) {
    const std::vector<std::byte> data(blocks * kBlockSize, std::byte{7});
    ASSERT_TRUE(fixture_.call([&](fs::Operation& op) {
      return fixture_.fs().write(op, file_, block * kBlockSize, data, {});
    }).ok());
  }
  void sync() {
    ASSERT_TRUE(fixture_.call([&](fs::Operation& op) { return fixture_.fs().fsync(op, file_); }).ok());
  }
  void checkpoint() { ASSERT_TRUE(fixture_.store().checkpoints().make({}).ok()); }

  std::uint64_t requests(IoKind kind) const { return device_.counts()[kind].requests; }
  std::uint64_t bytes(IoKind kind) const { return device_.counts()[kind].bytes; }

  ManualClock clock_;
  SeededRandom random_{1};
  io::MemDevice memory_{32u << 20};
  io::TraceDevice device_{memory_};
  FsFixture fixture_{device_, test_options(clock_, random_)};
  Ino file_;
};

// A stick with one open unit copies it for each write that does not go on where the last one ended.
TEST_F(DeviceRequests, what_is_written_in_a_row_is_one_row_where_the_device_keeps_one_place_cheap) {
  constexpr std::uint64_t kSeals = 24, kBlocks = 32, kOfSegment = 64;
  std::uint64_t end = 0, jumps = 0;
  device_.on_written([&](const io::IoRequest& request, std::uint64_t, std::uint64_t) {
    jumps += request.offset != end;
    end = request.offset + request.length;
  });
  fixture_.options().streams = 1;
  start();
  jumps = 0;
  for (std::uint64_t i = 0; i < kSeals; ++i) {
    write(i * kBlocks, kBlocks);
    ASSERT_TRUE(fixture_.seal().ok());
  }
  sync();
  EXPECT_LE(jumps, kSeals * (kBlocks + 1) / kOfSegment + 2) << "one for each segment";
}

TEST_F(DeviceRequests, a_block_and_its_sync_are_one_durable_write_of_8_KiB) {
  start();
  for (std::uint64_t block = 0; block < 8; ++block) {
    device_.reset();
    write(block * 3, 1);
    sync();
    EXPECT_EQ(requests(IoKind::write), 1U);
    EXPECT_EQ(bytes(IoKind::write), 2 * kBlockSize);
    EXPECT_EQ(requests(IoKind::flush), 0U) << "the write itself was durable";
  }
}

// Payload at a head is written beside the chunk: only a flush covers both.
TEST_F(DeviceRequests, a_large_write_and_its_sync_share_a_flush) {
  start();
  device_.reset();
  write(0, 32);
  sync();
  EXPECT_EQ(requests(IoKind::flush), 1U);
  EXPECT_LE(bytes(IoKind::write), 34 * kBlockSize);
}

TEST_F(DeviceRequests, a_sync_of_nothing_new_costs_nothing) {
  start();
  device_.reset();
  sync();
  EXPECT_EQ(requests(IoKind::write) + requests(IoKind::flush), 0U);
}

TEST_F(DeviceRequests, a_checkpoint_discards_what_it_has_freed) {
  start(true);
  for (int round = 0; round < 3; ++round) {
    write(0, 200);
    sync();
    checkpoint();
  }
  ASSERT_TRUE(fixture_.unmount().ok());
  EXPECT_GT(requests(IoKind::discard), 0U);
}

// Every second group of blocks dies; the segments stay in use by the others.
TEST_F(DeviceRequests, a_checkpoint_discards_the_holes_that_it_has_made) {
  constexpr std::uint64_t kGroups = 24, kEach = 8;
  start(true);
  for (std::uint64_t i = 0; i < 2 * kGroups; ++i) write(1 + i * kEach, kEach);
  sync();
  checkpoint();
  checkpoint();
  device_.reset();
  for (std::uint64_t i = 0; i < kGroups; ++i) write(1 + 2 * i * kEach, kEach);
  sync();
  checkpoint();
  fixture_.store().io().drain();
  EXPECT_GE(bytes(IoKind::discard), kGroups * kEach * kBlockSize);
  EXPECT_LE(bytes(IoKind::discard), 2 * kGroups * kEach * kBlockSize) << "what lives must not be told";
  std::vector<std::byte> block(kBlockSize);
  for (std::uint64_t i = 0; i <= 2 * kGroups * kEach; ++i) {
    const auto read = fixture_.call([&](fs::Operation& op) { return fixture_.fs().read(op, file_, i * kBlockSize, block); });
    ASSERT_TRUE(read.ok() && block[0] == std::byte{7}) << i;
  }
  device_.reset();
  checkpoint();
  fixture_.store().io().drain();
  EXPECT_LE(bytes(IoKind::discard), 16 * kBlockSize) << "once is enough";
}

}  // namespace
}  // namespace varve::test
